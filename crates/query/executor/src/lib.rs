//! Runs plans: planned and executed on the query threads, their batches handed over one by one, again where workers are lost.
//!
//! Never changes rows and never knows a session: a plan and what a statement runs with come in, rows go out.
//!
//! Start at [`Executor`]; `attempts.rs` is where a query may run and when it begins again, `prepare.rs` makes operators of its plan.

mod attempts;
mod context;
mod executor;
mod prepare;
pub mod progress;
mod ran;
mod row_stream;

pub use attempts::Attempts;
pub use context::RunContext;
pub use executor::Executor;
pub use prepare::operators;
pub use progress::Progress;
pub use ran::Ran;
pub use row_stream::RowStream;
