//! Runs plans on the query threads or on workers, and returns their rows one batch at a time.
//!
//! Never changes rows and knows no sessions: a plan and a [`RunContext`] come in, rows go out. The executor never
//! retries; the session does.
//!
//! - `executor.rs`: [`Executor`], the entry point,
//! - `run_context.rs`: the resources and settings of one run,
//! - `prepare_plan.rs`: chooses where a query runs and makes its operators,
//! - `row_stream.rs`: the stream of a running query's batches,
//! - `first_plan.rs`: the first plan that a statement ran, for EXPLAIN ANALYZE,
//! - `statement_progress.rs`: counters of a running COPY.

mod executor;
mod first_plan;
mod prepare_plan;
mod row_stream;
mod run_context;
pub mod statement_progress;

pub use executor::Executor;
pub use first_plan::FirstPlan;
pub use prepare_plan::prepare_local;
pub use row_stream::RowStream;
pub use run_context::RunContext;
pub use statement_progress::StatementProgress;
