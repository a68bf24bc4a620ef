//! The way of a statement from text to plan, and plans that are kept for statements that come again.
//!
//! Never does I/O and never runs anything: what a statement needs beside the catalog is fetched before it is planned. Start at `planner.rs`: which statement goes to which crate.
//!
//! - `resolve.rs` says what has to be fetched before a statement is planned,
//! - `kept.rs` has the plans of queries without parameters, by their texts; `prepared_plan.rs` those of prepared statements,
//! - `session/` plans SET, SHOW and what else concerns the session alone, `explain/` reads the options of EXPLAIN.

mod explain;
mod kept;
mod planner;
mod prepared_plan;
mod resolve;
mod session;

#[cfg(test)]
mod tests;

pub use self::planner::Planner;
pub use self::prepared_plan::PreparedPlan;
pub use self::resolve::MayMiss;
