//! Unflushed rows as record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use catalog::{RowPosition, TableRows};
use rowstore::{BatchBuilder, RowVersion, StoredColumn};
use shards::{ColumnDef, ORDINAL_COLUMN, ROW_ID_COLUMN, missing_value};
use storage_error::from_rowstore;
use types::{RowId, SqlResult};

/// Value of the `__place` column for unflushed rows.
pub const UNFLUSHED_PLACE: i64 = -1;

/// Converts rows to a batch of these columns.
pub(crate) fn unflushed_batch(
    rows: &[(RowId, Arc<RowVersion>)],
    columns: &[ColumnDef],
    schema: &SchemaRef,
) -> SqlResult<RecordBatch> {
    let stored = columns.iter().filter(|column| !is_hidden(column)).map(stored_column);
    let stored = stored.collect::<SqlResult<Vec<_>>>()?;
    let mut builder = BatchBuilder::new(&stored, rows.len()).map_err(from_rowstore)?;
    for (_, row) in rows {
        builder.push(row.tuple.reader()).map_err(from_rowstore)?;
    }
    let mut values = builder.finish().into_iter();
    let arrays = columns.iter().filter_map(|column| match column.id {
        ROW_ID_COLUMN => Some(row_ids(rows)),
        ORDINAL_COLUMN => Some(Arc::new(Int64Array::from_value(UNFLUSHED_PLACE, rows.len())) as ArrayRef),
        _ => values.next(),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays.collect(), &options);
    batch.map_err(|error| types::SqlError::internal(format!("could not build a batch of unflushed rows: {error}")))
}

/// Returns the description by which a column's values are read from stored rows.
pub fn stored_column(column: &ColumnDef) -> SqlResult<StoredColumn> {
    let missing = column.missing.as_deref();
    let missing = missing.map(|text| missing_value(&column.sql_type, Some(text))).transpose()?;
    Ok(StoredColumn { id: column.id, sql_type: column.sql_type.clone(), default_value: missing })
}

fn is_hidden(column: &ColumnDef) -> bool {
    column.id == ROW_ID_COLUMN || column.id == ORDINAL_COLUMN
}

fn row_ids(rows: &[(RowId, Arc<RowVersion>)]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| id.0.cast_signed())))
}

/// Encodes the location of a row as the value of its `__place` column.
#[must_use]
pub fn encode_place(place: RowPosition, rows: &TableRows) -> i64 {
    match place {
        RowPosition::Fresh => UNFLUSHED_PLACE,
        RowPosition::Shard { shard, ordinal } => {
            let number = rows.shards.shards.position(shard).unwrap_or_default();
            i64::try_from(number).expect("fewer than 2^31 shards") << 32 | i64::from(ordinal)
        }
    }
}
