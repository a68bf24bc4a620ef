//! The last check before rows are written: batches must have exactly the table's columns.

use std::sync::Arc;

use arrow::array::{Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use catalog::Table;
use plan::schema_of;
use scan::convert_to_column_type;
use types::{Condition, SqlError, SqlResult};

/// Converter of batches to the table's schema.
pub struct BatchConformer {
    table: Arc<Table>,
    schema: SchemaRef,
}

impl BatchConformer {
    pub fn new(table: &Arc<Table>) -> Self {
        Self { schema: schema_of(&table.columns), table: Arc::clone(table) }
    }

    /// Converts a batch to the table's schema; values in another layout, such as text that is not a view, are cast.
    ///
    /// # Errors
    /// `23502` for a NULL in a NOT NULL column; `XX000` for columns that do not match.
    pub fn conform(&self, batch: RecordBatch) -> SqlResult<RecordBatch> {
        let (found, wanted) = (batch.num_columns(), self.schema.fields().len());
        if found != wanted {
            return Err(SqlError::internal(format!(
                "a batch to load has {found} columns, but table \"{}\" has {wanted}",
                self.table.name
            )));
        }
        let mut columns = Vec::with_capacity(wanted);
        for ((column, field), values) in self.table.columns.iter().zip(self.schema.fields()).zip(batch.columns()) {
            // The plan has checked this with a better error; a shard must never violate it.
            if column.not_null && 0 < values.null_count() {
                return Err(not_null(&self.table, &column.name));
            }
            debug_assert_eq!(*field.data_type(), column.sql_type.arrow_type(), "the schema is the table's");
            columns.push(convert_to_column_type(values, &column.sql_type)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options).map_err(|error| {
            SqlError::internal(format!("could not build a batch of rows for table \"{}\": {error}", self.table.name))
        })
    }
}

fn not_null(table: &Table, column: &str) -> SqlError {
    SqlError::new(
        Condition::NotNullViolation,
        format!("null value in column \"{column}\" of relation \"{}\" violates not-null constraint", table.name),
    )
    .with_column(column)
}
