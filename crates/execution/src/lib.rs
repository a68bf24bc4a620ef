//! Runs plans: reads, writes, COPY both ways and EXPLAIN.
//!
//! Never parses SQL and never decides visibility: `planner` makes the plans, `txn` commits what they wrote.
//!
//! Start at `execution.rs` for what a server holds and `run/` for how a query runs; then `write/` for rows on their way into tables,
//! `copy/` for loading and unloading.

#[cfg(test)]
mod compile_tests;
#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod exchange_tests;
mod execution;
#[cfg(test)]
mod executor_tests;
mod explain;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod modify_tests;
#[cfg(test)]
mod planning_work;
#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod settle_tests;
#[cfg(test)]
mod sql_fixture;
#[cfg(test)]
mod write_tests;

pub use execution::Execution;
pub use explain::Explainer;
