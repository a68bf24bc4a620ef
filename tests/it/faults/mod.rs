//! Crash tests on real servers: acknowledged changes exist afterwards, and no others.
//!
//! - `ledger_client.rs`: a client that remembers its acknowledged changes; start here.
//! - `ledger.rs`: the tables and all of their clients.
//! - `failpoints.rs`: servers that die at each failpoint; `kills.rs`: at random times.
//! - `contention.rs`: many clients that compete for the same rows.

mod contention;
mod failpoints;
mod kills;
mod ledger;
mod ledger_client;
