//! Sessions: the settings, prepared statements and portals of a client, and how its statements run, independent of the
//! wire protocol.
//!
//! Never plans and never reads or writes rows: `planner` plans, `executor`, `dml` and `copy` run plans, `txn` commits.
//! Results go to a [`result_sink::ResultSink`], which encodes them for the client.
//!
//! Start at `execute.rs`: the one loop that plans and runs a statement in every protocol, and retries it after a
//! conflict with another transaction, a wait for its cluster or the loss of a worker. The files by subject:
//!
//! - A session and its transaction: `session.rs`, `transaction_block.rs`, `block_status.rs`, `session_state.rs`, `temporary.rs`,
//!   `session_sequences.rs`.
//! - A running statement, its clock and its limits: `statement.rs`, `statement_timer.rs`, `interrupt.rs`, `disconnect_watcher.rs`,
//!   `client_wait.rs`, `snapshot_age.rs`, `old_snapshots.rs`.
//! - Its steps: `executable.rs`, `execute.rs`, `retry.rs`, `resolve.rs`, `plan.rs`, `planning.rs`, `plan_basis.rs`,
//!   `statement_context.rs`, `commit_history.rs`, `admit.rs`, `cluster_slot.rs`, `token.rs`, `token_request.rs`, `throttle.rs`,
//!   `run_context.rs`, `started_statement.rs`.
//! - Parse, Bind and Execute: `bind.rs`, `prepared_statement.rs`, `bound_statement.rs`, `portal.rs`, `extended.rs`.
//! - The primary-key fast path: `cached_lookup.rs`, `run_key_lookup.rs`, and `fast_path.rs` for lookups that need not wait.
//! - Statements that are no queries: `command.rs`, `cursor.rs`, `define.rs`, `copy.rs`, `cluster.rs`,
//!   `check_storage.rs`.
//! - Results: `rows.rs`, `result_sink.rs`, `send.rs`, `notice.rs`.
//! - State shared by all sessions: `instance.rs`, `backends.rs`, `activity.rs`, `query_log.rs`, `metrics.rs`,
//!   `watchdog.rs`.

mod activity;
mod admit;
pub mod backends;
pub mod bind;
pub mod block_status;
mod bound_statement;
mod cached_lookup;
mod check_storage;
pub mod client_wait;
mod cluster;
mod cluster_slot;
mod command;
mod commit_history;
mod copy;
mod cursor;
mod define;
pub mod disconnect_watcher;
mod executable;
mod execute;
mod extended;
mod fast_path;
pub mod instance;
pub mod interrupt;
pub mod metrics;
pub mod notice;
mod old_snapshots;
mod plan;
mod plan_basis;
mod planning;
mod portal;
mod prepared_statement;
pub mod query_log;
mod resolve;
pub mod result_sink;
mod retry;
pub mod rows;
mod run_context;
mod run_key_lookup;
mod send;
mod session;
mod session_sequences;
pub mod session_state;
mod snapshot_age;
mod started_statement;
mod statement;
mod statement_context;
mod statement_timer;
mod temporary;
mod throttle;
mod token;
mod token_request;
mod transaction_block;
pub mod watchdog;

pub use session::{Session, StatementPosition};
