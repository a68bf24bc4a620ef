//! Worker processes of an instance: mutual authentication, join protocol, process supervision, and `kiln worker`
//! itself.
//!
//! This crate neither plans queries nor reads rows: tasks are run by the crate `exchange`.
//!
//! - `fleet.rs`: the instance's side as one object
//! - `processes/`: the worker host that starts, watches and stops worker processes for a control plane
//! - `launcher_command.rs`: the command that starts a worker
//! - `join/`: the protocol between a worker and its instance
//! - `join_ticket.rs`, `join_credential.rs`: credentials with which a worker joins for the first time
//! - `certificate_authority/`, `mutual_tls.rs`: certificate authority and TLS configuration
//! - `tls_listener.rs`, `task_dialer.rs`, `socket_options.rs`: incoming and outgoing connections
//! - `worker/`: the worker process
//! - `slot_folder.rs`: a worker's folder for cache and spill files
//! - `dedicated_thread.rs`: a thread with its own runtime

mod certificate_authority;
mod dedicated_thread;
mod fleet;
mod join;
mod join_credential;
mod join_ticket;
mod launcher_command;
mod mutual_tls;
mod processes;
mod slot_folder;
mod socket_options;
mod task_dialer;
mod tls_listener;
mod worker;

#[cfg(test)]
mod fixtures;

pub use certificate_authority::{Authority, AuthorityError};
pub use fleet::{Fleet, FleetError, FleetSettings};
pub use join_credential::{JoinCredential, TokenFile};
pub use join_ticket::{Ticket, TicketError};
pub use launcher_command::{Launcher, LauncherError};
pub use processes::{CacheStatistics, WorkerProcesses, can_watch_processes};
pub use task_dialer::task_url;
pub use worker::{WorkerError, WorkerExit, WorkerSettings, parse_instance_url, run};

/// Environment variable that passes the join ticket to a worker process.
pub const TICKET_VARIABLE: &str = "KILN_JOIN_TICKET";
