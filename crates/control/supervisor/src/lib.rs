//! Background services of a server: each is started, watched and stopped in the same way.
//!
//! Owns their tasks, and what is known of each. Never knows what a service does: it is a future that reports to a
//! [`types::ServiceHealth`].
//!
//! Start at [`Supervisor`].

mod service;
mod supervisor;

pub use service::{ServiceState, ServiceStatus};
pub use supervisor::Supervisor;
