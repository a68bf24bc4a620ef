//! Planning of statements from text to plan, with a cache of plans for repeated statements.
//!
//! Never does I/O and never runs anything: inputs that a statement needs beside the catalog are fetched before it is
//! planned.
//!
//! - `planner.rs`: [`Planner`], which dispatches each statement to the crate that plans it; start here.
//! - `inputs_to_fetch.rs`: determines the inputs that must be fetched before a statement is planned.
//! - `plan_cache.rs`: the cache of plans of queries without parameters, by text; `prepared_plan.rs`: plans of prepared
//!   statements.
//! - `session/`: plans SET, SHOW and other statements that concern only the session.
//! - `explain_options.rs`: reads the options of EXPLAIN.

mod explain_options;
mod inputs_to_fetch;
mod plan_cache;
mod planner;
mod prepared_plan;
mod session;

#[cfg(test)]
mod tests;

pub use self::inputs_to_fetch::PossibleInputs;
pub use self::planner::Planner;
pub use self::prepared_plan::PreparedPlan;
