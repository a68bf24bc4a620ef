//! Sessions: the settings, prepared statements and portals of a client, and how its statements run, independent of the
//! wire protocol.
//!
//! Never plans and never reads or writes rows: `planner` plans, `executor`, `dml` and `copy` run plans, `txn` commits.
//! Results go to a [`result_sink::ResultSink`], which encodes them for the client.
//!
//! Start at `execute.rs`: the one loop that plans and runs a statement in every protocol, and retries it after a
//! conflict with another transaction, a wait for its cluster or the loss of a worker. The files by subject:
//!
//! - A session and its transaction: `session.rs`, `block.rs`, `block_status.rs`, `held.rs`, `temporary.rs`,
//!   `numbers.rs`.
//! - A running statement, its clock and its limits: `statement.rs`, `life.rs`, `interrupt.rs`, `hang_up.rs`,
//!   `client_wait.rs`, `snapshot_age.rs`, `old_snapshots.rs`.
//! - Its steps: `executable.rs`, `execute.rs`, `retry.rs`, `resolve.rs`, `plan.rs`, `planning.rs`, `plan_basis.rs`,
//!   `statement_context.rs`, `pasts.rs`, `admit.rs`, `turn.rs`, `token.rs`, `asked.rs`, `throttle.rs`,
//!   `run_context.rs`, `started.rs`.
//! - Parse, Bind and Execute: `bind.rs`, `prepared.rs`, `bound.rs`, `portal.rs`, `extended.rs`.
//! - The primary-key fast path: `kept_program.rs`, `by_key.rs`, and `at_once.rs` for lookups that need not wait.
//! - Statements that are no queries: `command.rs`, `cursor.rs`, `define.rs`, `copy.rs`, `cluster.rs`,
//!   `check_storage.rs`.
//! - Results: `rows.rs`, `result_sink.rs`, `send.rs`, `notice.rs`.
//! - State shared by all sessions: `instance.rs`, `backends.rs`, `activity.rs`, `query_log.rs`, `metrics.rs`,
//!   `watchdog.rs`.

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
