//! Sample values of `types::sample_values` as values and columns, for the conformance tests of codecs.

use arrow::array::ArrayRef;
use types::SqlType;
use types::sample_values::{Sample, samples};

use crate::value::List;
use crate::{ColumnBuilder, Value};

/// Borrows a sample as a value. The elements of a list are leaked, which is acceptable in tests.
#[must_use]
pub fn sample_value(sample: &Sample) -> Value<'_> {
    match sample {
        Sample::Null => Value::Null,
        Sample::Bool(value) => Value::Bool(*value),
        Sample::Int(value) => Value::Int(*value),
        Sample::Decimal(value) => Value::Decimal(*value),
        Sample::Float4(value) => Value::Float4(*value),
        Sample::Float8(value) => Value::Float8(*value),
        Sample::Text(value) => Value::Text(value),
        Sample::Bytes(value) => Value::Bytes(value),
        Sample::Interval(months, days, nanos) => Value::Interval { months: *months, days: *days, nanos: *nanos },
        Sample::List(items) => {
            Value::List(List::from_values(items.iter().map(sample_value).collect::<Vec<_>>().leak()))
        }
    }
}

/// Builds a column of `samples`.
///
/// # Panics
/// If one is not of the type.
#[must_use]
pub fn sample_column(sql_type: &SqlType, samples: &[Sample]) -> ArrayRef {
    let mut builder = ColumnBuilder::new(sql_type, samples.len()).expect("every type has an Arrow column");
    for sample in samples {
        builder.append(sample_value(sample)).expect("a sample is of its type");
    }
    builder.finish()
}

/// Builds the column of all samples of a type.
#[must_use]
pub fn all_samples(sql_type: &SqlType) -> ArrayRef {
    sample_column(sql_type, &samples(sql_type))
}
