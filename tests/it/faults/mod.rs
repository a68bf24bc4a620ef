//! Real servers that die, and what their clients were told: everything that was acknowledged is there afterwards, nothing else is.
//!
//! Start at `worker.rs` for who remembers; `failpoints.rs` lets servers die at every named moment, `kills.rs` at any,
//! `contention.rs` has many clients want the same things.

mod contention;
mod failpoints;
mod kills;
mod ledger;
mod worker;
