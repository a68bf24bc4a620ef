//! Sessions: the settings, prepared statements and portals of a client, and how its statements run, independent of the
//! wire protocol.
//!
//! Never plans and never reads or writes rows: `planner` plans, `executor`, `dml` and `copy` run plans, `txn` commits.
//! Results go to a [`result_sink::ResultSink`], which encodes them for the client.
//!
//! Start at `execute.rs`: the one loop that plans and runs a statement in every protocol, and retries it after a
//! conflict with another transaction, a wait for its cluster or the loss of a worker. The files by subject:
//!
//! - A session and its transaction: `session.rs`, `transaction_block.rs`, `transaction_block_status.rs`,
//!   `session_state.rs`, `temporary_objects.rs`, `session_sequences.rs`.
//! - A running statement, its clock and its limits: `running_statement.rs`, `statement_timer.rs`, `interrupt.rs`,
//!   `disconnect_watcher.rs`, `client_wait.rs`, `snapshot_age.rs`, `release_old_snapshots.rs`.
//! - Its steps: `executable_statement.rs`, `execute.rs`, `retry_reason.rs`, `fetch_planning_inputs.rs`,
//!   `plan_statement.rs`, `planning_work.rs`, `cached_plan_validity.rs`, `statement_context.rs`, `commit_history.rs`,
//!   `admit_statement.rs`, `cluster_slot.rs`, `idempotency_token.rs`, `idempotency_token_request.rs`,
//!   `flush_backpressure.rs`, `run_context.rs`, `started_statement.rs`.
//! - Parse, Bind and Execute: `extended_query_requests.rs`, `prepared_statement.rs`, `bound_statement.rs`, `portal.rs`,
//!   `extended_query.rs`.
//! - The primary-key fast path: `cached_key_lookups.rs`, `run_key_lookup.rs`, and `fast_path.rs` for lookups that need
//!   not wait.
//! - Statements that are no queries: `session_commands.rs`, `cursor.rs`, `data_definition.rs`, `copy.rs`,
//!   `cluster_commands.rs`, `check_storage.rs`.
//! - Results: `result_rows.rs`, `result_sink.rs`, `send_result_rows.rs`, `message_severity.rs`.
//! - State shared by all sessions: `instance.rs`, `backends.rs`, `system_table_source.rs`, `query_log.rs`,
//!   `metrics.rs`, `thread_watchdog.rs`.

mod admit_statement;
pub mod backends;
mod bound_statement;
mod cached_key_lookups;
mod cached_plan_validity;
mod check_storage;
pub mod client_wait;
mod cluster_commands;
mod cluster_slot;
mod commit_history;
mod copy;
mod cursor;
mod data_definition;
pub mod disconnect_watcher;
mod executable_statement;
mod execute;
mod extended_query;
pub mod extended_query_requests;
mod fast_path;
mod fetch_planning_inputs;
mod flush_backpressure;
mod idempotency_token;
mod idempotency_token_request;
pub mod instance;
pub mod interrupt;
pub mod message_severity;
pub mod metrics;
mod plan_statement;
mod planning_work;
mod portal;
mod prepared_statement;
pub mod query_log;
mod release_old_snapshots;
pub mod result_rows;
pub mod result_sink;
mod retry_reason;
mod run_context;
mod run_key_lookup;
mod running_statement;
mod send_result_rows;
mod session;
mod session_commands;
mod session_sequences;
pub mod session_state;
mod snapshot_age;
mod started_statement;
mod statement_context;
mod statement_timer;
mod system_table_source;
mod temporary_objects;
pub mod thread_watchdog;
mod transaction_block;
pub mod transaction_block_status;

pub use session::{Session, StatementPosition};
