//! The way of a statement from text to plan, and plans that are kept for those who ask again.
//!
//! Never does I/O and never runs anything. Start at `planner.rs`: which statement goes where.

mod explain;
mod kept;
mod planner;
mod prepared_plan;
mod session;

#[cfg(test)]
mod tests;

pub use self::planner::Planner;
pub use self::prepared_plan::PreparedPlan;
