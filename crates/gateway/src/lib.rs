//! Owns the front doors: the PostgreSQL wire protocol and the HTTP port; who may come in; sessions with their settings,
//! prepared statements, portals and transaction blocks; and what a client is told, errors and SQLSTATEs included.
//!
//! Never plans and never reads or writes a row: statements go to `planner`, plans to `execution`, changes to `txn`.
//!
//! Start at `session/mod.rs`: `Session::run` is one statement from text to its last row. Then `pg/connection.rs` for how
//! messages become such calls, `instance.rs` for what all sessions share.

mod activity;
mod backends;
mod config;
mod connection_limit;
mod gateway;
mod http;
mod instance;
mod interrupt;
mod life;
mod metrics;
mod pg;
mod query_log;
mod session;
mod watchdog;

pub use config::GatewayConfig;
pub use gateway::Gateway;
