//! Format, options and target columns of the input.

use arrow::datatypes::{Schema, SchemaRef};
use std::sync::Arc;
use types::SqlType;
use types::text::DateContext;

/// Parameters of parsing, the same for all chunks of a COPY.
#[derive(Debug)]
pub(crate) struct InputLayout {
    /// Name of the table, for error contexts.
    pub(crate) table: String,
    /// Columns of a record, in order.
    pub(crate) columns: Vec<TargetColumn>,
    pub(crate) record_format: RecordFormat,
    /// Context for parsing dates.
    pub(crate) dates: DateContext,
    /// True for ON_ERROR ignore: records with an invalid value are skipped.
    pub(crate) skips_bad_records: bool,
    /// Minimum bytes of a chunk but the last; [`CHUNK_BYTES`](super::chunk_cutter::CHUNK_BYTES) except in tests.
    pub(crate) chunk_bytes: usize,
    pub(crate) schema: SchemaRef,
}

/// Target column of a field.
#[derive(Debug, Clone)]
pub(crate) struct TargetColumn {
    pub(crate) name: String,
    pub(crate) sql_type: SqlType,
    /// True for FORCE_NULL: a quoted null marker is NULL too.
    pub(crate) force_null: bool,
    /// True for FORCE_NOT_NULL: the null marker is text.
    pub(crate) force_not_null: bool,
    /// Default value as text, for the DEFAULT marker (`None` for NULL); outer `None` if the column has no default.
    pub(crate) default: Option<Option<String>>,
}

/// Record format of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RecordFormat {
    Text(DelimitedOptions),
    Csv { delimited: DelimitedOptions, quote: u8, escape: u8 },
    Binary,
}

/// Format options that text and CSV share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DelimitedOptions {
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) default: Option<String>,
    pub(crate) header: HeaderMode,
}

/// Treatment of the first line of each input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum HeaderMode {
    /// The first line is data.
    #[default]
    Absent,
    /// The first line is skipped.
    Skip,
    /// The first line must have the names of the target columns, in order.
    Match,
}

impl InputLayout {
    /// Returns the schema of batches; all columns are nullable, because constraints are checked when rows are written.
    pub(crate) fn batch_schema(columns: &[TargetColumn]) -> SchemaRef {
        Arc::new(Schema::new(
            columns.iter().map(|column| column.sql_type.arrow_field(&column.name, true)).collect::<Vec<_>>(),
        ))
    }
}
