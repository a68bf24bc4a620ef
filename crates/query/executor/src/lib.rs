//! Runs plans: planned and executed on the query threads, their batches handed over one by one.
//!
//! Never changes rows and never knows a session: a plan and what a statement runs with come in, rows go out.
//!
//! Start at [`Executor`]; `prepare.rs` says where a query runs, and makes operators of its plan. The executor never retries; the session does.

mod context;
mod executor;
mod prepare;
pub mod progress;
mod ran;
mod row_stream;

pub use context::RunContext;
pub use executor::Executor;
pub use prepare::operators;
pub use progress::Progress;
pub use ran::Ran;
pub use row_stream::RowStream;
