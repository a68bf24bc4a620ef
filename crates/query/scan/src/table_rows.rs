//! Conversion of batches to stored rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::Schema;
use catalog::Table;
use rowstore::{Tuple, encode_rows};
use storage_error::from_rowstore;
use types::{ColumnId, SqlError, SqlResult};

use crate::column_conversion::convert_to_column_type;

/// Converts the columns of a table to stored rows.
///
/// # Errors
/// Values that cannot be stored in their column.
pub fn encode_table_rows(table: &Table, columns: &[ArrayRef]) -> SqlResult<Vec<Tuple>> {
    let ids: Vec<ColumnId> = table.columns.iter().map(|column| column.id).collect();
    let columns =
        table.columns.iter().zip(columns).map(|(column, values)| convert_to_column_type(values, &column.sql_type));
    encode_reordered(&ids, &columns.collect::<SqlResult<Vec<_>>>()?)
}

/// Encodes rows of some columns, given in any order.
pub fn encode_reordered(ids: &[ColumnId], columns: &[ArrayRef]) -> SqlResult<Vec<Tuple>> {
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_unstable_by_key(|position| ids[*position]);
    let ids: Vec<ColumnId> = order.iter().map(|position| ids[*position]).collect();
    let columns: Vec<ArrayRef> = order.iter().map(|position| ArrayRef::clone(&columns[*position])).collect();
    encode_rows(&columns, &ids).map_err(from_rowstore)
}

/// Returns `count` columns of a batch, beginning at `start`.
pub fn slice_columns(batch: &RecordBatch, start: usize, count: usize) -> SqlResult<RecordBatch> {
    let schema = batch.schema();
    let fields: Vec<_> = schema.fields()[start..start + count].to_vec();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let columns = batch.columns()[start..start + count].to_vec();
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| SqlError::internal(format!("could not select columns of a batch to encode its rows: {error}")))
}
