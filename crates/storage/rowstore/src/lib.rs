//! Row store: in-memory rows of a table that are not yet flushed to Parquet, with indexes for lookups by key.
//!
//! The crate does not commit and does not decide visibility: a table's fresh rows are one immutable value, from which
//! `txn` derives the next.
//!
//! In reading order:
//! - `fresh_rows/`: the fresh rows of a table, and the uncommitted changes of a transaction
//! - `layer/`: a set of rows with its indexes
//! - `row.rs`: a row version
//! - `index_entry/`: index entries
//! - `key.rs`: order-preserving encoding of index keys
//! - `tuple.rs`, `tuple/`: stored form of a row
//! - `value.rs`: a borrowed value
//! - `column.rs`, `builder.rs`, `batch.rs`: conversion between Arrow columns and rows
//! - `error.rs`: the crate's errors
//! - `samples.rs`: columns of sample values, for conformance tests

mod batch;
mod builder;
mod column;
mod error;
mod fresh_rows;
mod index_entry;
mod key;
mod layer;
mod row;
#[doc(hidden)]
pub mod samples;
mod tuple;
mod value;

pub use batch::{BatchBuilder, StoredColumn, decode_columns, encode_rows};
pub use builder::ColumnBuilder;
pub use column::ColumnValues;
pub use error::{Error, Result};
pub use fresh_rows::{FreshRows, SealedLayer, UncommittedRows};
pub use index_entry::IndexEntry;
pub use key::{encode_key, encode_key_value};
pub use layer::Layer;
pub use row::RowVersion;
pub use tuple::{Tuple, TupleReader, TupleWriter};
pub use value::{List, ListIter, Value};
