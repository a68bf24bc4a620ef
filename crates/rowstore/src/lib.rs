//! Fresh rows: what was inserted or changed lately, found by key in microseconds, until it settles into shards.
//!
//! Never commits and never decides visibility: a table's rows are one immutable value, and `txn` makes the next from it.
//!
//! Start at `fresh.rs` for what a table holds, `layer.rs` for how rows are found.

mod fresh;
mod layer;
mod row;

pub use fresh::{FreshRows, OwnRows, Sealed};
pub use layer::{Layer, row_of};
pub use row::{IndexEntry, Row};
