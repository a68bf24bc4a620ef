//! Assembles the services that run plans for a server. Each service lives in its own crate.
//!
//! Tests that need storage, transactions and a planner, but no sessions, are here, too.

#[cfg(test)]
mod compile_tests;
#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod exchange_tests;
mod execution;
#[cfg(test)]
mod executor_tests;
#[cfg(test)]
mod explain_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod flush_tests;
#[cfg(test)]
mod modify_tests;
#[cfg(test)]
mod planner_tests;
#[cfg(test)]
mod planning_growth_tests;
#[cfg(test)]
mod scan_tests;
#[cfg(test)]
mod sql_fixture;
#[cfg(test)]
mod write_tests;

pub use execution::Execution;
