//! Physical planning: makes the operators of an optimized logical plan, and implements Kiln's own operators.
//!
//! Never chooses between logical plans. `compile` replaces operators by compiled fragments of the engine.
//!
//! Start at [`plan_operators`] in `plan.rs`.
//!
//! - `planner.rs`: operators of single plan nodes,
//! - `rules.rs`: the physical optimizer rules: DataFusion's, with corrections (`datafusion_rules.rs`, `fenced_rule.rs`,
//!   `filter_size.rs`), and Kiln's own,
//! - `single_threaded.rs`, `parallelize.rs`: single-threaded plans, and their conversion for several threads,
//! - `shared_rows/`: subplans computed once for several readers,
//! - `subplan/`: correlated subqueries without a join form,
//! - `project_set/`: the rows of `generate_series`,
//! - `rank_limit/`: removes rows whose rank exceeds a limit before they are sorted,
//! - `portable.rs`: Kiln's own operators as plain data, to be sent to workers.

mod datafusion_rules;
mod fenced_rule;
mod filter_size;
mod parallelize;
mod plan;
mod planner;
pub mod portable;
mod project_set;
mod rank_limit;
mod rules;
mod shared_rows;
mod single_threaded;
mod subplan;

pub use self::parallelize::CoversEntirePlan;
pub use self::plan::{Threading, partition_operators, plan_operators, plan_query};
#[cfg(test)]
pub(crate) use self::planner::OperatorPlanner;
pub use self::planner::operator_planning;
pub use self::rank_limit::RankLimitExec;
pub use self::rules::selects_joins;
pub use self::shared_rows::{SharedRows, SharedScanExec};
