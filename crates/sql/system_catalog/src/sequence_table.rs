//! Sequences read as relations: one row with the current position.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::datatypes::Schema;
use catalog::SequencePosition;
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use functions::error::from_datafusion;
use types::{SqlError, SqlResult, SqlType};

/// Columns of every sequence.
pub const SEQUENCE_COLUMNS: [(&str, SqlType); 3] =
    [("last_value", SqlType::Int8), ("log_cnt", SqlType::Int8), ("is_called", SqlType::Bool)];

/// Builds the relation of a sequence with its row.
pub fn sequence_table(position: &SequencePosition) -> SqlResult<Arc<dyn TableProvider>> {
    let fields: Vec<_> = SEQUENCE_COLUMNS.iter().map(|(name, sql_type)| sql_type.arrow_field(name, false)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![position.last_value])),
        Arc::new(Int64Array::from(vec![position.prepaid])),
        Arc::new(BooleanArray::from(vec![position.is_called])),
    ];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|error| SqlError::internal(error.to_string()))?;
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(from_datafusion)?;
    Ok(Arc::new(table))
}
