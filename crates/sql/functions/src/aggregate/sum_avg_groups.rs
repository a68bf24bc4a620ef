//! Accumulator of `sum` and `avg` for many groups.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, Float32Array, Float64Array, Int64Array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use types::numeric;

use super::running_total::TotalValue;
use super::sum_avg::{FinishTotal, TotalKind, TotalRule};
use crate::arithmetic::{divide_scaled, float_overflow, overflow};
use crate::external;

/// Total and count per group.
#[derive(Debug)]
pub(super) struct TotalGroups<T> {
    shape: TotalRule,
    state: DataType,
    output: DataType,
    totals: Vec<T>,
    counts: Vec<i64>,
}

impl<T: TotalValue> TotalGroups<T> {
    pub(super) fn new(shape: TotalRule, state: DataType, output: DataType) -> Self {
        Self { shape, state, output, totals: Vec::new(), counts: Vec::new() }
    }

    fn grow(&mut self, group_count: usize) {
        self.totals.resize(group_count, T::default());
        self.counts.resize(group_count, 0);
    }
}

impl<T: FinishTotal> GroupsAccumulator for TotalGroups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        let (totals, counts) = (&mut self.totals, &mut self.counts);
        let mut add = |row: usize, value: T| {
            let group = group_indices[row];
            totals[group] = totals[group].add(value)?;
            counts[group] += 1;
            Ok(())
        };
        match filter {
            None => T::read(&values[0], add),
            Some(filter) => {
                T::read(
                    &values[0],
                    |row, value| {
                        if filter.is_valid(row) && filter.value(row) { add(row, value) } else { Ok(()) }
                    },
                )
            }
        }
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let counts = emit_to.take_needed(&mut self.counts);
        T::finish(totals, &counts, self.shape, &self.output)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = T::array(emit_to.take_needed(&mut self.totals), &self.state, None)?;
        let counts: ArrayRef = Arc::new(Int64Array::from(emit_to.take_needed(&mut self.counts)));
        Ok(vec![totals, counts])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.grow(total_num_groups);
        let (totals, counts) = (&mut self.totals, &mut self.counts);
        T::read(&values[0], |row, value| {
            let group = group_indices[row];
            totals[group] = totals[group].add(value)?;
            Ok(())
        })?;
        for (group, count) in group_indices.iter().zip(values[1].as_primitive::<Int64Type>().values()) {
            counts[*group] += count;
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut totals = vec![T::default(); rows];
        let mut counts = vec![0_i64; rows];
        T::read(&values[0], |row, value| {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                totals[row] = value;
                counts[row] = 1;
            }
            Ok(())
        })?;
        Ok(vec![T::array(totals, &self.state, None)?, Arc::new(Int64Array::from(counts))])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<T>() + self.counts.capacity() * size_of::<i64>()
    }
}

/// Returns the null mask of groups: those without values are NULL.
fn non_empty_groups(counts: &[i64]) -> Option<NullBuffer> {
    let is_full = counts.iter().all(|count| *count != 0);
    (!is_full).then(|| counts.iter().map(|count| *count != 0).collect())
}

impl FinishTotal for i128 {
    fn finish(mut totals: Vec<Self>, counts: &[i64], shape: TotalRule, output: &DataType) -> Result<ArrayRef> {
        if shape.kind == TotalKind::Average {
            for (total, count) in totals.iter_mut().zip(counts) {
                if *count != 0 {
                    *total =
                        divide_scaled(*total, i128::from(*count), shape.shift).ok_or_else(|| external(overflow()))?;
                }
            }
        }
        if *output == DataType::Int64 {
            let whole = |total: &i128| {
                i64::try_from(*total).map_err(|_| {
                    external(types::SqlError::new(types::Condition::NumericValueOutOfRange, "bigint out of range"))
                })
            };
            let values: Vec<i64> = totals.iter().map(whole).collect::<Result<_>>()?;
            return Ok(Arc::new(Int64Array::new(values.into(), non_empty_groups(counts))));
        }
        let limit = numeric::power_of_ten(38).unsigned_abs();
        if totals.iter().any(|total| limit <= total.unsigned_abs()) {
            return Err(external(overflow()));
        }
        Self::array(totals, output, non_empty_groups(counts))
    }
}

impl FinishTotal for f64 {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "PostgreSQL rounds the same way")]
    fn finish(mut totals: Vec<Self>, counts: &[i64], shape: TotalRule, output: &DataType) -> Result<ArrayRef> {
        if shape.kind == TotalKind::Average {
            for (total, count) in totals.iter_mut().zip(counts) {
                *total = total.div_wrapping(*count as f64);
            }
        }
        if *output == DataType::Float32 {
            let narrowed = totals.iter().map(|total| match *total as f32 {
                infinite if infinite.is_infinite() && total.is_finite() => Err(external(float_overflow())),
                narrowed => Ok(narrowed),
            });
            let narrowed = narrowed.collect::<Result<Vec<f32>>>()?;
            return Ok(Arc::new(Float32Array::new(narrowed.into(), non_empty_groups(counts))));
        }
        Ok(Arc::new(Float64Array::new(totals.into(), non_empty_groups(counts))))
    }
}
