//! Parts of plans beside DataFusion's nodes: tables that plans scan, estimates, and limits of depth and size.
//!
//! Never chooses between plans and never runs one.
//!
//! - `shard_table.rs`: [`ShardTable`], a table of the catalog as a plan scans it; start here.
//! - `stream_table.rs`: [`StreamTable`], a leaf whose rows are pushed from outside.
//! - `estimate/`: estimates of rows and columns, which the optimizer computes.
//! - `plan_limits.rs`: limits of a plan's depth and size.
//! - `balance_chains.rs`: balances long chains of AND and OR.
//! - `unique_name.rs`: names that no relation or column of a plan has yet.
//! - `standard_functions.rs`: standard aggregate and window functions, recognized without their names.
//! - `find_expression.rs`: searches a plan for an expression.
//! - `no_fragment_cache.rs`: the mark of a session that does not use the fragment cache.
//! - `operator_planning.rs`: the physical planner that a later crate supplies.
//! - `cancellation.rs`: cancellation of, and yielding in, DataFusion operators that do neither.

mod balance_chains;
pub mod cancellation;
pub mod estimate;
mod find_expression;
mod no_fragment_cache;
mod operator_planning;
pub mod plan_limits;
mod shard_table;
mod standard_functions;
mod stream_table;
mod unique_name;

pub use self::balance_chains::{balance, balance_concatenations, balance_conditions};
pub use self::find_expression::plan_has_expression;
pub use self::no_fragment_cache::NoFragmentCache;
pub use self::operator_planning::{OperatorPlanning, OperatorRules};
pub use self::shard_table::{ROW_ID, ROW_POSITION, ShardTable, TableScanPlanner, datum_to_scalar, schema_of};
pub use self::standard_functions::{StandardAggregate, StandardWindow};
pub use self::stream_table::{RunStreams, StreamTable};
pub use self::unique_name::{take_unique_name, unique_name};
