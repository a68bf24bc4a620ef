//! Operators: the physical plan of a query, made from its logical one, and the operators in it that are Kiln's own.
//!
//! Never chooses between logical plans; programs that replace operators are made in `compile`.
//!
//! Start at [`plan_operators`] in `plan.rs`.
//!
//! - `planner.rs` makes operators of single nodes, `rules.rs` lists the rules that go over them: DataFusion's, kept from what they would get wrong
//!   (`fenced.rs`, `filter_size.rs`),
//! - `undivided.rs` makes operators for one thread, and `partitioned.rs` makes of these the ones for several,
//! - `shared_rows/` reads what is computed once for several readers, `subplan/` evaluates correlated subqueries that have no join form, `project_set/`
//!   makes the rows of `generate_series`, `rank_limit/` leaves out rows that rank beyond a limit,
//! - `portable.rs` takes operators of Kiln's own apart, so that workers make them again.

mod fenced;
mod filter_size;
mod partitioned;
mod plan;
mod planner;
pub mod portable;
mod project_set;
mod rank_limit;
mod rules;
mod shared_rows;
mod subplan;
mod undivided;

pub use self::partitioned::IsWhole;
pub use self::plan::{Division, partition_operators, plan_operators, plan_query};
#[cfg(test)]
pub(crate) use self::planner::OperatorPlanner;
pub use self::planner::operator_planning;
pub use self::shared_rows::{SharedRows, SharedScanExec};
