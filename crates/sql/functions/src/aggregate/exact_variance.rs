//! Variance and standard deviation of exact numbers, from their count, sum and sum of squares.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Decimal256Array, Int64Array};
use arrow::datatypes::{Decimal256Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::running_total::TotalValue;
use super::variance::VarianceKind;
use crate::arithmetic::overflow;
use crate::external;

/// Scale of results.
pub(super) const RESULT_SCALE: u8 = 16;

/// Exact count, sum and sum of squares.
#[derive(Debug, Clone)]
pub(super) struct ExactVariance {
    kind: VarianceKind,
    scale: u8,
    count: i64,
    sum: i256,
    sum_of_squares: i256,
}

impl ExactVariance {
    /// Creates an empty accumulator for values of scale `scale`.
    pub(super) fn new(kind: VarianceKind, scale: u8) -> Self {
        Self { kind, scale, count: 0, sum: i256::ZERO, sum_of_squares: i256::ZERO }
    }

    fn add(&mut self, value: i128) -> Result<()> {
        let value = i256::from_i128(value);
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
        self.sum_of_squares =
            self.sum_of_squares.checked_add(value.wrapping_mul(value)).ok_or_else(|| external(overflow()))?;
        Ok(())
    }

    /// Returns the result; `None` for too few values.
    fn value(&self) -> Result<Option<i128>> {
        if self.count < if self.kind.is_sample() { 2 } else { 1 } {
            return Ok(None);
        }
        if let Some(value) = self.result() {
            return Ok(Some(value));
        }
        let estimate = self.float_value().ok_or_else(|| external(overflow()))?;
        let digits = types::numeric::NumericPrecision::new(38, RESULT_SCALE);
        crate::cast::float_to_numeric(estimate, 16, digits).map_err(external).map(Some)
    }

    /// Computes `(n * squares - sum^2) / (n * (n - 1))`, and its root for deviations, rounded to the result's scale;
    /// `None` if an intermediate value overflows.
    fn result(&self) -> Option<i128> {
        let count = i256::from_i128(self.count.into());
        let spread = count.checked_mul(self.sum_of_squares)?.checked_sub(self.sum.checked_mul(self.sum)?)?;
        let divisor = if self.kind.is_sample() {
            count.checked_mul(count.checked_sub(i256::ONE)?)?
        } else {
            count.checked_mul(count)?
        };
        let ten = i256::from_i128(10);
        // The dividend has twice the input's scale; a root halves the number of digits.
        let wanted = if self.kind.is_root() { u32::from(RESULT_SCALE) * 2 } else { u32::from(RESULT_SCALE) };
        let have = u32::from(self.scale) * 2;
        let (mut numerator, mut denominator) = (spread, divisor);
        if have <= wanted {
            numerator = numerator.checked_mul(ten.checked_pow(wanted - have)?)?;
        } else {
            denominator = denominator.checked_mul(ten.checked_pow(have - wanted)?)?;
        }
        let half = denominator.checked_div(i256::from_i128(2))?;
        let value = numerator.checked_add(half)?.checked_div(denominator)?;
        let value = if self.kind.is_root() { rounded_square_root(value) } else { value };
        value.to_i128()
    }

    /// Computes the same in double precision, if the exact computation overflows.
    fn float_value(&self) -> Option<f64> {
        let float = |value: i256| value.to_string().parse::<f64>().ok();
        let count = float(i256::from_i128(self.count.into()))?;
        let unit = 10_f64.powi(i32::from(self.scale));
        let (sum, sum_of_squares) = (float(self.sum)? / unit, float(self.sum_of_squares)? / unit / unit);
        let divisor = if self.kind.is_sample() { count - 1.0 } else { count };
        let variance = ((sum_of_squares - sum * sum / count) / divisor).max(0.0);
        Some(if self.kind.is_root() { variance.sqrt() } else { variance })
    }
}

/// Returns the square root rounded to an integer.
fn rounded_square_root(value: i256) -> i256 {
    if value <= i256::ZERO {
        return i256::ZERO;
    }
    if let Some(value) = value.to_i128() {
        let root = value.unsigned_abs().isqrt();
        let is_nearer_above = root < value.unsigned_abs() - root * root;
        let root = i128::try_from(root).expect("a root is less than its square");
        return i256::from_i128(root + i128::from(is_nearer_above));
    }
    let two = i256::from_i128(2);
    // Newton's method from above converges to the floor of the root.
    let mut guess = i256::ONE;
    while guess.wrapping_mul(guess) < value {
        guess = guess.wrapping_mul(two);
    }
    loop {
        let next = guess.wrapping_add(value.wrapping_div(guess)).wrapping_div(two);
        if guess <= next {
            break;
        }
        guess = next;
    }
    let rest = value.wrapping_sub(guess.wrapping_mul(guess));
    if guess < rest { guess.wrapping_add(i256::ONE) } else { guess }
}

impl Accumulator for ExactVariance {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <i128 as TotalValue>::read(&values[0], |_, value| self.add(value))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <i128 as TotalValue>::read(&values[0], |_, value| {
            let value = i256::from_i128(value);
            self.count -= 1;
            self.sum = self.sum.wrapping_sub(value);
            self.sum_of_squares = self.sum_of_squares.wrapping_sub(value.wrapping_mul(value));
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let wide = |array: &ArrayRef| {
            array.as_primitive::<Decimal256Type>().iter().flatten().fold(i256::ZERO, i256::wrapping_add)
        };
        self.count += states[0].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        self.sum = self.sum.wrapping_add(wide(&states[1]));
        self.sum_of_squares = self.sum_of_squares.wrapping_add(wide(&states[2]));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let wide = |value| ScalarValue::Decimal256(Some(value), 76, 0);
        Ok(vec![ScalarValue::Int64(Some(self.count)), wide(self.sum), wide(self.sum_of_squares)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let scale = i8::try_from(RESULT_SCALE).expect("a small constant");
        self.value().map(|value| ScalarValue::Decimal128(value, 38, scale))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Exact count, sum and sum of squares per group.
#[derive(Debug)]
pub(super) struct ExactVarianceGroups {
    empty_group: ExactVariance,
    groups: Vec<ExactVariance>,
}

impl ExactVarianceGroups {
    pub(super) fn new(kind: VarianceKind, scale: u8) -> Self {
        Self { empty_group: ExactVariance::new(kind, scale), groups: Vec::new() }
    }
}

/// Builds a state column of sums, which are never NULL.
fn wide_decimal_array(values: impl Iterator<Item = i256>) -> Result<ArrayRef> {
    Ok(Arc::new(Decimal256Array::from_iter_values(values).with_precision_and_scale(76, 0)?))
}

impl GroupsAccumulator for ExactVarianceGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize(total_num_groups, self.empty_group.clone());
        let counts = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        <i128 as TotalValue>::read(&values[0], |row, value| {
            if counts(row) { self.groups[group_indices[row]].add(value) } else { Ok(()) }
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.groups.resize(total_num_groups, self.empty_group.clone());
        let counts = states[0].as_primitive::<Int64Type>().values();
        let [sums, sum_of_squares] = [1, 2].map(|state| states[state].as_primitive::<Decimal256Type>().values());
        for (row, group) in group_indices.iter().enumerate() {
            let group = &mut self.groups[*group];
            group.count += counts[row];
            group.sum = group.sum.wrapping_add(sums[row]);
            group.sum_of_squares = group.sum_of_squares.wrapping_add(sum_of_squares[row]);
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let groups = emit_to.take_needed(&mut self.groups);
        let values = groups.iter().map(ExactVariance::value).collect::<Result<Vec<_>>>()?;
        let scale = i8::try_from(RESULT_SCALE).expect("a small constant");
        Ok(Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, scale)?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let groups = emit_to.take_needed(&mut self.groups);
        let counts = Int64Array::from_iter_values(groups.iter().map(|group| group.count));
        let sums = wide_decimal_array(groups.iter().map(|group| group.sum))?;
        Ok(vec![Arc::new(counts), sums, wide_decimal_array(groups.iter().map(|group| group.sum_of_squares))?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let groups: Vec<usize> = (0..rows).collect();
        let mut each = Self { empty_group: self.empty_group.clone(), groups: Vec::new() };
        each.update_batch(values, &groups, filter, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<ExactVariance>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_rounded_whatever_their_size() {
        for (value, expected) in [(0, 0), (1, 1), (2, 1), (3, 2), (6, 2), (7, 3), (10_i128.pow(36), 10_i128.pow(18))] {
            assert_eq!(rounded_square_root(i256::from_i128(value)), i256::from_i128(expected), "root of {value}");
        }
        let large = i256::from_i128(10_i128.pow(30));
        assert_eq!(rounded_square_root(large.wrapping_mul(large)), large);
        assert_eq!(rounded_square_root(large.wrapping_mul(large).wrapping_add(large)), large);
        assert_eq!(
            rounded_square_root(large.wrapping_mul(large).wrapping_add(large).wrapping_add(i256::ONE)),
            large.wrapping_add(i256::ONE)
        );
    }
}
