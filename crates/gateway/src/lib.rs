//! The front doors: the PostgreSQL wire protocol and the HTTP port.
//!
//! Never runs a statement: `session` does, and tells its results to a sink that is one of these.
//!
//! Start at `pg/connection.rs` for how messages become calls of a session, and `gateway.rs` for what a server opens.

mod config;
mod connection_limit;
mod gateway;
mod http;
mod pg;

pub use config::GatewayConfig;
pub use gateway::Gateway;
