//! The last check before rows are written: batches have exactly the table's columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type, SchemaRef};
use catalog::Table;
use plan::schema_of;
use types::numeric::{self, Digits};
use types::{Condition, SqlError, SqlResult, SqlType};

/// Gives batches the table's schema.
pub(super) struct Conform {
    table: Arc<Table>,
    schema: SchemaRef,
}

impl Conform {
    pub(super) fn new(table: &Arc<Table>) -> Self {
        Self { schema: schema_of(&table.columns), table: Arc::clone(table) }
    }

    /// `batch` with the table's schema; values in another layout (text that is no view) are brought into ours.
    pub(super) fn batch(&self, batch: RecordBatch) -> SqlResult<RecordBatch> {
        let (found, wanted) = (batch.num_columns(), self.schema.fields().len());
        if found != wanted {
            return Err(SqlError::internal(format!("{found} columns for the {wanted} of \"{}\"", self.table.name)));
        }
        let mut columns = Vec::with_capacity(wanted);
        for ((column, field), values) in self.table.columns.iter().zip(self.schema.fields()).zip(batch.columns()) {
            // The plan has checked it with more to say; a file must not lie about it in any case.
            if column.not_null && 0 < values.null_count() {
                return Err(not_null(&self.table, &column.name));
            }
            debug_assert_eq!(*field.data_type(), column.sql_type.arrow_type(), "the schema is the table's");
            columns.push(in_form_of(values, &column.sql_type)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| SqlError::internal(format!("rows for \"{}\": {error}", self.table.name)))
    }
}

/// Values in the form of a column's type. A numeric parameter has the digits that it was sent with: it is rounded to the column's.
pub(crate) fn in_form_of(values: &ArrayRef, sql_type: &SqlType) -> SqlResult<ArrayRef> {
    let wanted = sql_type.arrow_type();
    match (values.data_type(), sql_type) {
        (found, _) if *found == wanted => Ok(Arc::clone(values)),
        (DataType::Decimal128(_, from), SqlType::Numeric { precision, scale }) if 0 <= *from => {
            let (from, digits) = (from.unsigned_abs(), Digits::new(*precision, *scale));
            let rounded: SqlResult<Decimal128Array> =
                values.as_primitive::<Decimal128Type>().try_unary(|value| with_digits(value, from, digits));
            Ok(Arc::new(rounded?.with_data_type(wanted)))
        }
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let cast = cast_with_options(values, &wanted, &options);
            cast.map_err(|error| SqlError::internal(format!("a value as {sql_type}: {error}")))
        }
    }
}

/// A numeric of scale `from` with a column's digits; `22003` where it has more before the point.
pub(crate) fn with_digits(value: i128, from: u8, digits: Digits) -> SqlResult<i128> {
    let rescaled = numeric::rescale(value, from, digits.scale);
    numeric::check(rescaled.ok_or_else(|| numeric::field_overflow(digits.precision, digits.scale))?, digits)
}

fn not_null(table: &Table, column: &str) -> SqlError {
    SqlError::new(
        Condition::NotNullViolation,
        format!("null value in column \"{column}\" of relation \"{}\" violates not-null constraint", table.name),
    )
    .with_column(column)
}
