//! Three-valued AND, OR and NOT, and the result of SUM.

use std::sync::Arc;

use super::arithmetic::narrow_if_possible;
use super::columnar_value::ColumnarValue;
use super::{Expression, ExpressionState};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Truth value of each row: true, false, or NULL if neither bit is set.
struct Truth {
    is_true: Bitmap,
    is_false: Bitmap,
}

/// Splits a boolean column into true and false rows.
fn to_truth(computed: ColumnarValue, rows: usize) -> Result<Truth> {
    let column = computed.into_column(rows)?;
    let ColumnData::Bools(bits) = &column.data else {
        return Err(Error::Internal("an operand of AND or OR is not boolean"));
    };
    Ok(match &column.validity {
        Some(valid) => Truth { is_true: valid.and(bits), is_false: valid.and_not(bits) },
        None => Truth { is_true: (**bits).clone(), is_false: bits.not() },
    })
}

/// Builds a boolean column from true and false rows.
fn column(known: Truth) -> ColumnarValue {
    let valid = known.is_true.or(&known.is_false);
    let validity = (valid.count_ones() != valid.rows()).then(|| Arc::new(valid));
    ColumnarValue::from_column(Column { data: ColumnData::Bools(Arc::new(known.is_true)), validity })
}

/// Returns the rows whose value is true.
pub(super) fn true_rows(computed: ColumnarValue, rows: usize) -> Result<Bitmap> {
    to_truth(computed, rows).map(|known| known.is_true)
}

/// Computes AND of all parts.
pub(super) fn and(parts: &[Expression], batch: &Batch, memory: &mut ExpressionState) -> Result<ColumnarValue> {
    let mut whole = Truth { is_true: Bitmap::filled(batch.rows, true), is_false: Bitmap::filled(batch.rows, false) };
    for part in parts {
        let part = to_truth(part.compute(batch, memory)?, batch.rows)?;
        whole = Truth { is_true: whole.is_true.and(&part.is_true), is_false: whole.is_false.or(&part.is_false) };
    }
    Ok(column(whole))
}

/// Computes OR of all parts.
pub(super) fn or(parts: &[Expression], batch: &Batch, memory: &mut ExpressionState) -> Result<ColumnarValue> {
    let mut whole = Truth { is_true: Bitmap::filled(batch.rows, false), is_false: Bitmap::filled(batch.rows, true) };
    for part in parts {
        let part = to_truth(part.compute(batch, memory)?, batch.rows)?;
        whole = Truth { is_true: whole.is_true.or(&part.is_true), is_false: whole.is_false.and(&part.is_false) };
    }
    Ok(column(whole))
}

/// Computes NOT.
pub(super) fn not(computed: ColumnarValue) -> Result<ColumnarValue> {
    let ColumnData::Bools(bits) = &computed.column.data else {
        return Err(Error::Internal("the operand of NOT is not boolean"));
    };
    let data = ColumnData::Bools(Arc::new(bits.not()));
    Ok(ColumnarValue { column: Column { data, validity: computed.column.validity }, is_scalar: computed.is_scalar })
}

/// Turns sums into results of SUM: NULL if the count is 0, and an error with SQLSTATE 22003 if a sum exceeds its
/// type.
pub(super) fn finalize_sum(sum: ColumnarValue, count: &ColumnarValue, limits: Option<Bounds>) -> Result<ColumnarValue> {
    let ColumnData::Ints { values, .. } = &count.column.data else {
        return Err(Error::Internal("the row count of a SUM is not an integer"));
    };
    if sum.is_scalar || count.is_scalar || sum.column.validity.is_some() {
        return Err(Error::Internal("the sum and the count of a SUM must have one value per group"));
    }
    if let Some(limits) = limits
        && !fits_range(&sum.column.data, limits)
    {
        let is_bigint = limits == Bounds::I64;
        return Err(Error::out_of_range(if is_bigint { "bigint out of range" } else { "numeric field overflow" }));
    }
    // A single out-of-range group may have made the sums of all groups 128 bits wide.
    let data = match sum.column.data {
        ColumnData::WideInts(sums) if limits == Some(Bounds::I64) => narrow_if_possible(sums.to_vec()),
        data => data,
    };
    let counted = Bitmap::from_values(values, |count| count != 0);
    let validity = (counted.count_ones() != counted.rows()).then(|| Arc::new(counted));
    Ok(ColumnarValue::from_column(Column { data, validity }))
}

fn fits_range(sums: &ColumnData, limits: Bounds) -> bool {
    let holds = |sum: i128| limits.min <= sum && sum <= limits.max;
    match sums {
        ColumnData::Ints { bounds, .. } if holds(bounds.min) && holds(bounds.max) => true,
        ColumnData::Ints { values, .. } => values.iter().all(|sum| holds((*sum).into())),
        ColumnData::WideInts(values) => values.iter().all(|sum| holds(*sum)),
        _ => true,
    }
}
