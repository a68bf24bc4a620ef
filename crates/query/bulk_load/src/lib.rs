//! Many rows into shards of a table: put in the table's order, cut, written side by side, and sampled.
//!
//! Nothing is visible before the transaction commits, and nothing stays of a load that fails. Never checks keys and never decides which rows are written.
//!
//! Start at [`Loader`] and `load.rs` for how streams of rows become shards; `order.rs`, `cluster.rs`, `bucketed.rs` and `rounds.rs` put rows in a table's
//! order first.

mod bucketed;
mod cluster;
mod conform;
mod hilbert;
mod load;
mod loader;
mod order;
mod rounds;
pub mod sample;
mod shards_of;

pub use conform::Conform;
pub use load::{Load, Loaded, Portion, stage_rows};
pub use loader::Loader;
pub use order::ordered;
pub use shards_of::{SMALL_BUCKET_BYTES, ShardsOf};
