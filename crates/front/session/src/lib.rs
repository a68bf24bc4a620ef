//! Sessions: what a client has set, prepared and opened, and a statement's life without any wire.
//!
//! Never plans and never reads or writes a row: statements go to `planner`, plans to `executor` and its like, changes to `txn`. Results go to a
//! [`result_sink::ResultSink`], which knows how they are told.
//!
//! Start at `execute.rs`: the one loop by which a statement is planned and run, in every protocol, again where another transaction came first, it has
//! waited for its cluster, or a worker was lost. `session.rs` has what lies around it for a simple query, `extended.rs` for Parse, Bind and Execute; `at_once.rs` is the short way
//! of a row that is found by its key among fresh ones.

mod activity;
mod admit;
mod asked;
mod at_once;
pub mod backends;
pub mod bind;
mod block;
pub mod block_status;
mod bound;
mod by_key;
mod check_storage;
pub mod client_wait;
mod cluster;
mod command;
mod copy;
mod cursor;
mod define;
mod executable;
mod execute;
mod extended;
pub mod hang_up;
pub mod held;
pub mod instance;
pub mod interrupt;
mod kept_program;
mod life;
pub mod metrics;
pub mod notice;
mod numbers;
mod old_snapshots;
mod pasts;
mod plan;
mod plan_basis;
mod planning;
mod portal;
mod prepared;
pub mod query_log;
mod resolve;
pub mod result_sink;
mod retry;
pub mod rows;
mod run_context;
mod send;
mod session;
mod snapshot_age;
mod started;
mod statement;
mod statement_context;
mod temporary;
mod throttle;
mod token;
mod turn;
pub mod watchdog;

pub use session::{Place, Session};
