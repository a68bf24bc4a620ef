//! Workers that are processes of their own: who may be one, how it comes to its instance, what starts and ends it, and what it does.
//!
//! Never plans and never reads a row: tasks of queries go to `exchange`, which workers run it.
//!
//! Start at `fleet.rs` for what an instance has and `worker/mod.rs` for what a worker is. Between them is `join/`, what they say to each other;
//! `authority/` and `identity.rs` say who may say it. `processes/` makes workers of child processes, as a control plane wants them.

mod authority;
mod dial;
mod fleet;
mod identity;
mod join;
mod launcher;
mod listen;
mod own_thread;
mod processes;
mod slot_folder;
mod socket;
mod ticket;
mod way_in;
mod worker;

#[cfg(test)]
mod fixtures;

pub use authority::{Authority, AuthorityError};
pub use dial::task_url;
pub use fleet::{Fleet, FleetError, FleetSettings};
pub use launcher::{Launcher, LauncherError};
pub use processes::{CacheUses, Processes, can_watch_processes};
pub use ticket::{Ticket, TicketError};
pub use way_in::{TokenFile, WayIn};
pub use worker::{Ended, WorkerError, WorkerSettings, parse_join, run};

/// The variable in which a worker finds its ticket.
pub const TICKET_VARIABLE: &str = "KILN_JOIN_TICKET";
