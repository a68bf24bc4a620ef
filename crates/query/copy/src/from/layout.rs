//! What the incoming data looks like and which columns it fills.

use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;
use types::SqlType;
use types::text::DateContext;

/// Everything a parser has to know; the same for all chunks of a COPY.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The table's name, for error contexts.
    pub(crate) table: String,
    /// The columns of a record, in order.
    pub(crate) columns: Vec<Target>,
    pub(crate) dialect: Dialect,
    /// How dates are read.
    pub(crate) dates: DateContext,
    /// ON_ERROR ignore: a record with a value its type does not take is left out.
    pub(crate) skips_bad_records: bool,
    /// Bytes a chunk has at least, unless the input ends; [`CHUNK_BYTES`](super::cut::CHUNK_BYTES) but in tests.
    pub(crate) chunk_bytes: usize,
    pub(crate) schema: SchemaRef,
}

/// A column that records fill.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) sql_type: SqlType,
    /// FORCE_NULL: a quoted null marker is NULL too.
    pub(crate) force_null: bool,
    /// FORCE_NOT_NULL: the null marker is text.
    pub(crate) force_not_null: bool,
    /// What the DEFAULT marker stands for, as text (`None` for NULL); outer `None` where the column has no default.
    pub(crate) default: Option<Option<String>>,
}

/// How bytes become records and fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialect {
    Text(Marks),
    Csv { marks: Marks, quote: u8, escape: u8 },
    Binary,
}

/// The signs that text and CSV share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) default: Option<String>,
    pub(crate) header: Header,
}

/// What the first line of each input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Header {
    /// Data.
    #[default]
    Absent,
    /// Skipped.
    Skip,
    /// Column names that must equal ours, in order.
    Match,
}

impl Layout {
    /// The batch schema of `columns`: every column may be NULL here, constraints are checked where rows are written.
    pub(crate) fn schema_of(columns: &[Target]) -> SchemaRef {
        Arc::new(Schema::new(
            columns.iter().map(|column| column.sql_type.arrow_field(&column.name, true)).collect::<Vec<_>>(),
        ))
    }
}
