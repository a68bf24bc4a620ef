//! Three-valued AND, OR and NOT, and the result of SUM.

use std::sync::Arc;

use super::arithmetic::narrowed;
use super::computed::Computed;
use super::{Expression, Memory};
use crate::{Batch, Bits, Bounds, Column, Data, Error, Result};

/// Truth value of each row: true, false, or NULL if neither bit is set.
struct Known {
    is_true: Bits,
    is_false: Bits,
}

/// Splits a boolean column into true and false rows.
fn known(computed: Computed, rows: usize) -> Result<Known> {
    let column = computed.into_column(rows)?;
    let Data::Bools(bits) = &column.data else { return Err(Error::Form("a logical operand is not boolean")) };
    Ok(match &column.validity {
        Some(valid) => Known { is_true: valid.and(bits), is_false: valid.and_not(bits) },
        None => Known { is_true: (**bits).clone(), is_false: bits.not() },
    })
}

/// Builds a boolean column from true and false rows.
fn column(known: Known) -> Computed {
    let valid = known.is_true.or(&known.is_false);
    let validity = (valid.count() != valid.rows()).then(|| Arc::new(valid));
    Computed::rows(Column { data: Data::Bools(Arc::new(known.is_true)), validity })
}

/// Returns the rows whose value is true.
pub(super) fn truth(computed: Computed, rows: usize) -> Result<Bits> {
    known(computed, rows).map(|known| known.is_true)
}

/// Computes AND of all parts.
pub(super) fn all(parts: &[Expression], batch: &Batch, memory: &mut Memory) -> Result<Computed> {
    let mut whole = Known { is_true: Bits::all(batch.rows, true), is_false: Bits::all(batch.rows, false) };
    for part in parts {
        let part = known(part.compute(batch, memory)?, batch.rows)?;
        whole = Known { is_true: whole.is_true.and(&part.is_true), is_false: whole.is_false.or(&part.is_false) };
    }
    Ok(column(whole))
}

/// Computes OR of all parts.
pub(super) fn any(parts: &[Expression], batch: &Batch, memory: &mut Memory) -> Result<Computed> {
    let mut whole = Known { is_true: Bits::all(batch.rows, false), is_false: Bits::all(batch.rows, true) };
    for part in parts {
        let part = known(part.compute(batch, memory)?, batch.rows)?;
        whole = Known { is_true: whole.is_true.or(&part.is_true), is_false: whole.is_false.and(&part.is_false) };
    }
    Ok(column(whole))
}

/// Computes NOT.
pub(super) fn not(computed: Computed) -> Result<Computed> {
    let Data::Bools(bits) = &computed.column.data else { return Err(Error::Form("the operand of NOT is not boolean")) };
    let data = Data::Bools(Arc::new(bits.not()));
    Ok(Computed { column: Column { data, validity: computed.column.validity }, is_scalar: computed.is_scalar })
}

/// Turns sums into results of SUM: NULL if the count is 0, and an error with SQLSTATE 22003 if a sum exceeds its
/// type.
pub(super) fn some(sum: Computed, count: &Computed, limits: Option<Bounds>) -> Result<Computed> {
    let Data::Ints { values, .. } = &count.column.data else { return Err(Error::Form("a count is not an integer")) };
    if sum.is_scalar || count.is_scalar || sum.column.validity.is_some() {
        return Err(Error::Form("the sum and the count of a SUM must have one value per group"));
    }
    if let Some(limits) = limits
        && !lies_within(&sum.column.data, limits)
    {
        let is_bigint = limits == Bounds::I64;
        return Err(Error::out_of_range(if is_bigint { "bigint out of range" } else { "numeric field overflow" }));
    }
    // A single out-of-range group may have made the sums of all groups 128 bits wide.
    let data = match sum.column.data {
        Data::Wide(sums) if limits == Some(Bounds::I64) => narrowed(sums.to_vec()),
        data => data,
    };
    let counted = Bits::of_values(values, |count| count != 0);
    let validity = (counted.count() != counted.rows()).then(|| Arc::new(counted));
    Ok(Computed::rows(Column { data, validity }))
}

fn lies_within(sums: &Data, limits: Bounds) -> bool {
    let holds = |sum: i128| limits.min <= sum && sum <= limits.max;
    match sums {
        Data::Ints { bounds, .. } if holds(bounds.min) && holds(bounds.max) => true,
        Data::Ints { values, .. } => values.iter().all(|sum| holds((*sum).into())),
        Data::Wide(values) => values.iter().all(|sum| holds(*sum)),
        _ => true,
    }
}
