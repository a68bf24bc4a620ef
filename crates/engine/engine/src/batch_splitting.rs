//! Splits a batch into halves until its computed values fit a byte limit, or until the rows before a failing one are
//! isolated.

use types::value_memory;

use crate::cancellation::run_yielding;
use crate::{Batch, Error, Result};

/// Approximate limit in bytes of the values computed for one batch; a batch that exceeds it is halved.
const COMPUTED_BYTES_MAX: usize = 64 << 20;

/// Rows of a batch that are lost if one of its values cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorGranularity {
    /// All rows of the batch.
    Batch,
    /// The failing row and the rows after it. The rows before it are passed on first because a LIMIT may need no
    /// others.
    Row,
}

/// Computes a batch and passes the result to `next`: as a whole, or, if its values would be too large, portion by
/// portion in row order.
///
/// # Errors
/// Returns the errors of `compute` and `next`.
pub(crate) fn compute_in_portions<T>(
    batch: Batch,
    granularity: ErrorGranularity,
    mut compute: impl FnMut(Batch) -> Result<T>,
    mut next: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let is_to_be_halved = |computed: &Result<T>, is_too_much: bool| {
        is_too_much || (granularity == ErrorGranularity::Row && computed.as_ref().is_err_and(Error::is_row_error))
    };
    // Columns are shared, so cloning the batch is cheap compared with computing it.
    let (computed, is_too_much) = value_memory::run_with_memory_limit(COMPUTED_BYTES_MAX, || compute(batch.clone()));
    if !is_to_be_halved(&computed, is_too_much) {
        return next(computed?);
    }
    let mut portions = vec![batch];
    while let Some(portion) = portions.pop() {
        let (rows, middle) = (portion.rows, portion.rows / 2);
        if middle == 0 {
            // A single row cannot be split further.
            next(compute(portion)?)?;
            continue;
        }
        let (computed, is_too_much) =
            run_yielding(|| value_memory::run_with_memory_limit(COMPUTED_BYTES_MAX, || compute(portion.clone())));
        if is_to_be_halved(&computed, is_too_much) {
            // The stack is popped from its end: the first half comes next.
            portions.push(portion.clone().slice(middle, rows));
            portions.push(portion.slice(0, middle));
        } else {
            next(computed?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use types::ValueMemoryCounter;

    use super::*;
    use crate::{Bounds, Column, ColumnData};

    fn numbers(rows: i64) -> Batch {
        let bounds = Bounds { min: 0, max: rows.into() };
        let column = Column::new(ColumnData::Ints { values: Arc::new((0..rows).collect()), bounds });
        Batch { rows: column.rows(), columns: vec![column] }
    }

    fn values(batch: &Batch) -> Vec<i64> {
        let ColumnData::Ints { values, .. } = &batch.columns[0].data else { panic!("numbers") };
        values.to_vec()
    }

    /// Returns the portions of a batch in which row `at` takes `bytes(at)` bytes.
    fn portions(batch: Batch, bytes: impl Fn(i64) -> usize) -> Result<Vec<Vec<i64>>> {
        let mut all = Vec::new();
        let compute = |portion: Batch| {
            let mut guard = ValueMemoryCounter::default();
            values(&portion).into_iter().try_for_each(|row| guard.add(bytes(row)))?;
            Ok(portion)
        };
        compute_in_portions(batch, ErrorGranularity::Batch, compute, |portion| {
            all.push(values(&portion));
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn large_values_are_computed_in_portions_in_their_order() {
        let one = portions(numbers(1_000), |_| 1 << 10).expect("small values fit the limit");
        assert_eq!(one.len(), 1);
        let many = portions(numbers(1_000), |_| 1 << 20).expect("halves fit the limit");
        assert!(many.iter().all(|portion| portion.len() <= 64), "{many:?}");
        assert_eq!(many.concat(), (0..1_000).collect::<Vec<_>>());
        // Only the portions around a large row are split; a row above the limit is computed alone.
        let few =
            portions(numbers(1_000), |row| if row == 700 { 1 << 30 } else { 8 }).expect("a single row never fails");
        assert_eq!(few.concat(), (0..1_000).collect::<Vec<_>>());
        assert!(few.contains(&vec![700]) && few.len() < 20, "{few:?}");
    }

    #[test]
    fn rows_before_a_failing_row_are_passed_on() {
        let given = |granularity| {
            let mut all = Vec::new();
            let compute = |portion: Batch| match values(&portion).contains(&700) {
                true => Err(Error::UncomputableValue("row 700")),
                false => Ok(portion),
            };
            let outcome = compute_in_portions(numbers(1_000), granularity, compute, |portion| {
                all.extend(values(&portion));
                Ok(())
            });
            assert!(matches!(outcome, Err(Error::UncomputableValue("row 700"))), "{granularity:?}");
            all
        };
        assert_eq!(given(ErrorGranularity::Row), (0..700).collect::<Vec<_>>());
        assert_eq!(given(ErrorGranularity::Batch), Vec::<i64>::new());
    }

    #[test]
    fn errors_fail_the_whole_batch() {
        let failing = compute_in_portions(
            numbers(8),
            ErrorGranularity::Batch,
            |_| Err::<(), _>(Error::UncomputableValue("a sum")),
            |()| Ok(()),
        );
        assert!(matches!(failing, Err(Error::UncomputableValue("a sum"))));
    }
}
