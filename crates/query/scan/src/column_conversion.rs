//! Conversion of values to the Arrow type of a table column.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Decimal128Type};
use types::numeric::{self, NumericPrecision};
use types::{SqlError, SqlResult, SqlType};

/// Converts values to the type of a column. Numeric parameters, which have the scale that they were sent with, are
/// rounded to the column's scale.
pub fn convert_to_column_type(values: &ArrayRef, sql_type: &SqlType) -> SqlResult<ArrayRef> {
    let wanted = sql_type.arrow_type();
    match (values.data_type(), sql_type) {
        (found, _) if *found == wanted => Ok(Arc::clone(values)),
        (DataType::Decimal128(_, from), SqlType::Numeric { precision, scale }) if 0 <= *from => {
            let (from, digits) = (from.unsigned_abs(), NumericPrecision::new(*precision, *scale));
            let rounded: SqlResult<Decimal128Array> =
                values.as_primitive::<Decimal128Type>().try_unary(|value| rescale_numeric(value, from, digits));
            Ok(Arc::new(rounded?.with_data_type(wanted)))
        }
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let cast = cast_with_options(values, &wanted, &options);
            cast.map_err(|error| SqlError::internal(format!("could not convert a value to {sql_type}: {error}")))
        }
    }
}

/// Rounds a numeric of scale `from` to a column's scale; `22003` if it exceeds the column's precision.
pub fn rescale_numeric(value: i128, from: u8, digits: NumericPrecision) -> SqlResult<i128> {
    let rescaled = numeric::rescale(value, from, digits.scale);
    numeric::check_fits(rescaled.ok_or_else(|| numeric::field_overflow_error(digits.precision, digits.scale))?, digits)
}
