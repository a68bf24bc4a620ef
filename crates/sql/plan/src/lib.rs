//! Parts of plans beside DataFusion's nodes: tables that plans scan, estimates, and limits of depth and size.
//!
//! Never chooses between plans and never runs one.
//!
//! - `shard_table.rs`: [`ShardTable`], a table of the catalog as a plan scans it; start here.
//! - `stream_table.rs`: [`StreamTable`], a leaf whose rows are pushed from outside.
//! - `estimate/`: estimates of rows and columns, which the optimizer computes.
//! - `levels.rs`: limits of a plan's depth and size.
//! - `conditions.rs`: balances long chains of AND and OR.
//! - `any_expression.rs`: searches a plan for an expression.
//! - `fragment_cache.rs`: the mark of a session that does not use the fragment cache.
//! - `operator_planning.rs`: the physical planner that a later crate supplies.
//! - `stop.rs`: cancellation of, and yielding in, DataFusion operators that do neither.

mod any_expression;
mod conditions;
pub mod estimate;
mod fragment_cache;
pub mod levels;
mod operator_planning;
mod shard_table;
pub mod stop;
mod stream_table;

pub use self::any_expression::any_expression;
pub use self::conditions::{balanced, flatten_chains, flatten_concatenations};
pub use self::fragment_cache::NoFragmentCache;
pub use self::operator_planning::{OperatorPlanning, OperatorRules};
pub use self::shard_table::{PLACE, PlanScan, ROW_ID, ShardTable, scalar, schema_of};
pub use self::stream_table::{RunStreams, StreamTable};
