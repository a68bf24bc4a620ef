//! Row store: in-memory rows of a table that are not yet flushed to Parquet, with indexes for lookups by key.
//!
//! The crate does not commit and does not decide visibility: a table's fresh rows are one immutable value, from which
//! `txn` derives the next.
//!
//! In reading order:
//! - `fresh_rows/`: the fresh rows of a table, and the uncommitted changes of a transaction
//! - `layer/`: a set of rows with its indexes
//! - `row_version.rs`: a row version
//! - `index_entry/`: index entries
//! - `key_encoding.rs`: order-preserving encoding of index keys
//! - `tuple.rs`, `tuple/`: stored form of a row
//! - `value.rs`: a borrowed value
//! - `column_values.rs`, `column_builder.rs`, `batch_conversion.rs`: conversion between Arrow columns and rows
//! - `error.rs`: the crate's errors
//! - `sample_values.rs`: columns of sample values, for conformance tests

mod batch_conversion;
mod column_builder;
mod column_values;
mod error;
mod fresh_rows;
mod index_entry;
mod key_encoding;
mod layer;
mod row_version;
#[doc(hidden)]
pub mod sample_values;
mod tuple;
mod value;

pub use batch_conversion::{BatchBuilder, StoredColumn, decode_columns, encode_rows};
pub use column_builder::ColumnBuilder;
pub use column_values::ColumnValues;
pub use error::{Error, Result};
pub use fresh_rows::{FreshRows, SealedLayer, UncommittedRows};
pub use index_entry::IndexEntry;
pub use key_encoding::{encode_key, encode_key_value};
pub use layer::Layer;
pub use row_version::RowVersion;
pub use tuple::{Tuple, TupleReader, TupleWriter};
pub use value::{List, ListIter, Value};
