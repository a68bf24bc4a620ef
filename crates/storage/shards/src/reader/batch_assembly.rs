//! Builds batches of the wanted columns from decoded columns of the file.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use parquet::arrow::ProjectionMask;
use types::{ColumnId, RowId, SqlType};

use super::missing_values::MissingValue;
use super::{FileKind, OpenFile, ShardReader, row_positions};
use crate::external::conversion;
use crate::stored_types::decode_stored;
use crate::{ColumnDef, Error, ORDINAL_COLUMN, ROW_ID_COLUMN, Result, RowIds};

/// Recipe for building batches of the wanted columns.
#[derive(Debug)]
pub(crate) struct BatchAssembler {
    pub(crate) schema: SchemaRef,
    /// Source of each column of the batches.
    pub(crate) columns: Vec<ColumnSource>,
    /// Root columns of the file that are read, ascending.
    root_columns: Vec<usize>,
    /// Leaf columns below these, ascending.
    leaf_columns: Vec<usize>,
    object: String,
    /// True if values are converted from the types of an external file.
    is_external_file: bool,
}

/// Source of a column of the batches.
#[derive(Debug)]
pub(crate) enum ColumnSource {
    /// Index of the decoded column, and its SQL type.
    File(usize, SqlType),
    /// Missing value of a column that the file lacks.
    MissingValue(MissingValue),
    /// Positions of the rows in the shard.
    Ordinal,
    /// Consecutive row ids; this is the id of the shard's first row.
    RowId(RowId),
}

impl BatchAssembler {
    pub(crate) fn new(file: &OpenFile, columns: &[ColumnDef]) -> Result<Self> {
        let in_file: HashMap<ColumnId, usize> =
            file.ids.iter().enumerate().filter_map(|(root, id)| Some(((*id)?, root))).collect();
        let mut roots: Vec<usize> = columns.iter().filter_map(|column| in_file.get(&column.id).copied()).collect();
        roots.sort_unstable();
        roots.dedup();
        let parquet = file.metadata.parquet_schema();
        let leaves =
            (0..parquet.num_columns()).filter(|leaf| roots.binary_search(&parquet.get_column_root_idx(*leaf)).is_ok());
        let source = |column: &ColumnDef| {
            Ok(match in_file.get(&column.id) {
                Some(root) => {
                    let position = roots.binary_search(root).expect("root was collected from the same columns");
                    ColumnSource::File(position, column.sql_type.clone())
                }
                None if column.id == ORDINAL_COLUMN => ColumnSource::Ordinal,
                None if column.id == ROW_ID_COLUMN => match file.meta.row_ids {
                    RowIds::From(first) => ColumnSource::RowId(first),
                    RowIds::Stored | RowIds::None => return Err(no_row_ids_error(file)),
                },
                None => ColumnSource::MissingValue(MissingValue::new(column)?),
            })
        };
        Ok(Self {
            schema: ShardReader::schema(columns),
            leaf_columns: leaves.collect(),
            columns: columns.iter().map(source).collect::<Result<_>>()?,
            root_columns: roots,
            object: file.meta.object.clone(),
            is_external_file: matches!(file.file_kind, FileKind::External { .. }),
        })
    }

    /// Returns the leaf columns that are read, ascending.
    pub(crate) fn leaves(&self) -> &[usize] {
        &self.leaf_columns
    }

    /// Returns the leaf column of a wanted column; `None` if it is not read from the file or has several.
    pub(crate) fn leaf_of(&self, file: &OpenFile, position: usize) -> Option<usize> {
        let ColumnSource::File(root, _) = self.columns.get(position)? else { return None };
        let parquet = file.metadata.parquet_schema();
        let mut leaves =
            self.leaf_columns.iter().filter(|leaf| parquet.get_column_root_idx(**leaf) == self.root_columns[*root]);
        let leaf = leaves.next()?;
        leaves.next().is_none().then_some(*leaf)
    }

    /// Returns the projection for Parquet's decoder.
    pub(super) fn projection(&self, file: &OpenFile) -> ProjectionMask {
        ProjectionMask::roots(file.metadata.parquet_schema(), self.root_columns.iter().copied())
    }

    /// Builds the batch of the rows at `places` from the decoded columns.
    pub(super) fn build_batch(&self, positions: &[Range<u32>], decoded: &[ArrayRef]) -> Result<RecordBatch> {
        let rows = positions.iter().map(ExactSizeIterator::len).sum();
        let columns = self.columns.iter().zip(self.schema.fields()).map(|(source, field)| match source {
            ColumnSource::File(position, sql_type) if self.is_external_file => {
                conversion::convert(&decoded[*position], field, sql_type, &self.object).map(compact)
            }
            ColumnSource::File(position, sql_type) => self.decode_stored(&decoded[*position], sql_type),
            ColumnSource::MissingValue(missing) => missing.repeat(rows),
            ColumnSource::Ordinal => Ok(row_positions::ordinals(positions)),
            ColumnSource::RowId(first) => Ok(row_positions::row_ids(*first, positions)),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)?)
    }

    /// Converts a column from its stored form to its SQL type's Arrow type.
    fn decode_stored(&self, stored: &ArrayRef, sql_type: &SqlType) -> Result<ArrayRef> {
        let values = decode_stored(stored, sql_type)?;
        let wanted = sql_type.arrow_type();
        if *values.data_type() == wanted {
            return Ok(compact(values));
        }
        let reason = format!("a column of type {} in place of {sql_type}", values.data_type());
        Err(Error::Damaged { object: self.object.clone(), reason })
    }
}

/// Returns the error for a shard whose rows have no ids.
fn no_row_ids_error(file: &OpenFile) -> Error {
    Error::Damaged { object: file.meta.object.clone(), reason: "its rows have no ids".to_owned() }
}

/// Copies strings out of page buffers of which they use less than half, so that a batch does not keep complete pages
/// alive and is not charged for them.
fn compact(values: ArrayRef) -> ArrayRef {
    let Some(text) = values.as_string_view_opt() else { return values };
    let held: usize = text.data_buffers().iter().map(|buffer| buffer.len()).sum();
    if held <= 2 * text.total_buffer_bytes_used() {
        return values;
    }
    Arc::new(text.gc())
}
