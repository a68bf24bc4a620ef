//! Worker processes of an instance: mutual authentication, join protocol, process supervision, and `kiln worker`
//! itself.
//!
//! This crate neither plans queries nor reads rows: tasks are run by the crate `exchange`.
//!
//! - `fleet.rs`: the instance's side as one object
//! - `processes/`: the worker host that starts, watches and stops worker processes for a control plane
//! - `launcher.rs`: the command that starts a worker
//! - `join/`: the protocol between a worker and its instance
//! - `ticket.rs`, `join_credential.rs`: credentials with which a worker joins for the first time
//! - `authority/`, `identity.rs`: certificate authority and TLS configuration
//! - `listen.rs`, `dial.rs`, `socket.rs`: incoming and outgoing connections
//! - `worker/`: the worker process
//! - `slot_folder.rs`: a worker's folder for cache and spill files
//! - `dedicated_thread.rs`: a thread with its own runtime

mod authority;
mod dedicated_thread;
mod dial;
mod fleet;
mod identity;
mod join;
mod join_credential;
mod launcher;
mod listen;
mod processes;
mod slot_folder;
mod socket;
mod ticket;
mod worker;

#[cfg(test)]
mod fixtures;

pub use authority::{Authority, AuthorityError};
pub use dial::task_url;
pub use fleet::{Fleet, FleetError, FleetSettings};
pub use join_credential::{JoinCredential, TokenFile};
pub use launcher::{Launcher, LauncherError};
pub use processes::{CacheStatistics, WorkerProcesses, can_watch_processes};
pub use ticket::{Ticket, TicketError};
pub use worker::{WorkerError, WorkerExit, WorkerSettings, parse_instance_url, run};

/// Environment variable that passes the join ticket to a worker process.
pub const TICKET_VARIABLE: &str = "KILN_JOIN_TICKET";
