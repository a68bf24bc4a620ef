//! Fresh rows: what was inserted or changed lately, found by key in microseconds, until it settles into shards.
//!
//! Never commits and never decides visibility: a table's rows are one immutable value, and `txn` makes the next from it.
//!
//! Start at `fresh/` for what a table holds, `layer/` for how rows are found, `tuple.rs` for how a row is stored, `key.rs` for
//! what an index orders by and `entry/` for how it keeps that.

mod batch;
mod builder;
mod column;
mod entry;
mod error;
mod fresh;
mod key;
mod layer;
mod row;
mod tuple;
mod value;

pub use batch::{BatchBuilder, StoredColumn, batch_of, rows_of};
pub use builder::ColumnBuilder;
pub use column::ColumnValues;
pub use entry::IndexEntry;
pub use error::{Error, Result};
pub use fresh::{FreshRows, OwnRows, Sealed};
pub use key::{encode_key, encode_key_value};
pub use layer::Layer;
pub use row::Row;
pub use tuple::{Tuple, TupleReader, TupleWriter};
pub use value::{List, ListIter, Value};
