//! What plans are made of beside DataFusion's nodes: the tables that they read, what is believed about rows, and bounds on how much there may be.
//!
//! Never chooses between plans and never runs one.
//!
//! - `shard_table.rs` is a table of the catalog as a plan scans it, `stream_table.rs` rows that are pushed from outside,
//! - `estimate/` is what is believed about rows, `levels.rs` how deep and how large a plan may be,
//! - `conditions.rs` and `any_expression.rs` are walks that several crates take,
//! - `stop.rs` makes operators heed a stop where DataFusion's own go on.

mod any_expression;
mod conditions;
pub mod estimate;
pub mod levels;
mod shard_table;
pub mod stop;
mod stream_table;

pub use self::any_expression::any_expression;
pub use self::conditions::{balanced, flatten_chains};
pub use self::shard_table::{PLACE, PlanScan, ROW_ID, ShardTable, scalar, schema_of};
pub use self::stream_table::StreamTable;
