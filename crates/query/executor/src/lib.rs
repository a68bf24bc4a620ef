//! Runs plans on the query threads or on workers, and returns their rows one batch at a time.
//!
//! Never changes rows and knows no sessions: a plan and a [`RunContext`] come in, rows go out. The executor never
//! retries; the session does.
//!
//! - `executor.rs`: [`Executor`], the entry point,
//! - `context.rs`: the resources and settings of one run,
//! - `prepare.rs`: chooses where a query runs and makes its operators,
//! - `row_stream.rs`: the stream of a running query's batches,
//! - `first_plan.rs`: the first plan that a statement ran, for EXPLAIN ANALYZE,
//! - `progress.rs`: counters of a running COPY.

mod context;
mod executor;
mod first_plan;
mod prepare;
pub mod progress;
mod row_stream;

pub use context::RunContext;
pub use executor::Executor;
pub use first_plan::FirstPlan;
pub use prepare::prepare_local;
pub use progress::StatementProgress;
pub use row_stream::RowStream;
