//! What plans are made of beside DataFusion's nodes: the tables that they scan, estimates as plain data, and bounds on their depth and size.
//!
//! Never chooses between plans and never runs one.
//!
//! Start at `shard_table.rs`, a table of the catalog as a plan scans it.
//!
//! - `stream_table.rs` is a leaf whose rows are pushed from outside,
//! - `estimate/` is what is believed about rows and columns: the optimizer finds it out,
//! - `levels.rs` refuses plans that are too deep or too large,
//! - `conditions.rs` gives long chains of AND and OR few levels, `any_expression.rs` looks for an expression anywhere in a plan,
//! - `fragment_cache.rs` is what a session says of the cache of fragments,
//! - `operator_planning.rs` has the physical planner that a later crate gives,
//! - `stop.rs` lets operators be canceled where DataFusion's own go on.

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
