//! Physical planning: makes the operators of an optimized logical plan, and implements Kiln's own operators.
//!
//! Never chooses between logical plans. `compile` replaces operators by compiled fragments of the engine.
//!
//! Start at [`plan_operators`] in `plan_query.rs`.
//!
//! - `operator_planner.rs`: operators of single plan nodes,
//! - `optimizer_rules.rs`: the physical optimizer rules: DataFusion's, with corrections (`datafusion_rules.rs`,
//!   `fenced_rule.rs`, `bounded_filter_pushdown.rs`), and Kiln's own,
//! - `single_threaded_rules.rs`, `parallelize.rs`: single-threaded plans, and their conversion for several threads,
//! - `shared_rows/`: subplans computed once for several readers,
//! - `subplan/`: correlated subqueries without a join form,
//! - `project_set/`: the rows of `generate_series`,
//! - `rank_limit/`: removes rows whose rank exceeds a limit before they are sorted,
//! - `portable_operator.rs`: Kiln's own operators as plain data, to be sent to workers.

mod bounded_filter_pushdown;
mod datafusion_rules;
mod fenced_rule;
mod operator_planner;
mod optimizer_rules;
mod parallelize;
mod plan_query;
pub mod portable_operator;
mod project_set;
mod rank_limit;
mod shared_rows;
mod single_threaded_rules;
mod subplan;

#[cfg(test)]
pub(crate) use self::operator_planner::OperatorPlanner;
pub use self::operator_planner::operator_planning;
pub use self::optimizer_rules::selects_joins;
pub use self::parallelize::CoversEntirePlan;
pub use self::plan_query::{Threading, partition_operators, plan_operators, plan_query};
pub use self::rank_limit::RankLimitExec;
pub use self::shared_rows::{SharedRows, SharedScanExec};
