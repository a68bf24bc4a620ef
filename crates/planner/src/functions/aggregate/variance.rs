//! `variance`, `stddev` and their kind: exact for exact numbers, as `numeric`; Welford's way for floats.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, Float64Type, Int64Type, i256};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use types::SqlType;

use super::distinct::DistinctAccumulator;
use super::total::Sum;
use crate::functions::arithmetic::overflow;
use crate::functions::definition::missing_function;
use crate::functions::external;
use crate::semantics::type_rules::plain;

/// Digits after the point of exact results.
const SCALE: u8 = 16;

/// Which measure of spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Moment {
    VariancePopulation,
    VarianceSample,
    DeviationPopulation,
    DeviationSample,
}

impl Moment {
    fn is_sample(self) -> bool {
        matches!(self, Moment::VarianceSample | Moment::DeviationSample)
    }

    fn is_root(self) -> bool {
        matches!(self, Moment::DeviationPopulation | Moment::DeviationSample)
    }
}

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Spread {
    name: &'static str,
    moment: Moment,
    signature: Signature,
}

impl Spread {
    pub(super) fn new(name: &'static str, moment: Moment) -> Self {
        Self { name, moment, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn is_floating(input: &DataType) -> bool {
    matches!(input, DataType::Float32 | DataType::Float64)
}

impl AggregateUDFImpl for Spread {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(arguments).map(|_| arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match &arguments[0] {
            DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..) => {
                Ok(SqlType::Numeric { precision: 38, scale: SCALE }.arrow_type())
            }
            input if is_floating(input) => Ok(DataType::Float64),
            other => {
                let shown = SqlType::from_arrow_type(other).unwrap_or(SqlType::Text);
                Err(external(missing_function(self.name, &plain(&shown))))
            }
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let input = args.input_fields[0].data_type();
        if args.is_distinct {
            return Ok(DistinctAccumulator::state_fields(args.name, input));
        }
        let kept = if is_floating(input) { DataType::Float64 } else { DataType::Decimal256(76, 0) };
        Ok(vec![
            Arc::new(Field::new(format!("{}[count]", args.name), DataType::Int64, true)),
            Arc::new(Field::new(format!("{}[first]", args.name), kept.clone(), true)),
            Arc::new(Field::new(format!("{}[second]", args.name), kept, true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let input = args.expr_fields[0].data_type();
        let inner: Box<dyn Accumulator> = match input {
            input if is_floating(input) => {
                Box::new(FloatSpread { moment: self.moment, count: 0, mean: 0.0, squares: 0.0 })
            }
            input => {
                let scale =
                    if let DataType::Decimal128(_, scale) = input { u8::try_from(*scale).unwrap_or(0) } else { 0 };
                Box::new(ExactSpread { moment: self.moment, scale, count: 0, sum: i256::ZERO, squares: i256::ZERO })
            }
        };
        Ok(if args.is_distinct { Box::new(DistinctAccumulator::new(inner, input.clone())) } else { inner })
    }
}

/// Count, sum and sum of squares, exact.
#[derive(Debug)]
struct ExactSpread {
    moment: Moment,
    scale: u8,
    count: i64,
    sum: i256,
    squares: i256,
}

impl ExactSpread {
    /// `(n * squares - sum^2) / (n * (n - 1))`, then its root where asked, rounded to the result's scale.
    fn result(&self) -> Option<i128> {
        let count = i256::from_i128(self.count.into());
        let spread = count.checked_mul(self.squares)?.checked_sub(self.sum.checked_mul(self.sum)?)?;
        let divisor = if self.moment.is_sample() {
            count.checked_mul(count.checked_sub(i256::ONE)?)?
        } else {
            count.checked_mul(count)?
        };
        let ten = i256::from_i128(10);
        // The spread has twice the input's scale; a root halves the digits it is given.
        let wanted = if self.moment.is_root() { u32::from(SCALE) * 2 } else { u32::from(SCALE) };
        let have = u32::from(self.scale) * 2;
        let (mut numerator, mut denominator) = (spread, divisor);
        if have <= wanted {
            numerator = numerator.checked_mul(ten.checked_pow(wanted - have)?)?;
        } else {
            denominator = denominator.checked_mul(ten.checked_pow(have - wanted)?)?;
        }
        let half = denominator.checked_div(i256::from_i128(2))?;
        let value = numerator.checked_add(half)?.checked_div(denominator)?;
        let value = if self.moment.is_root() { root(value) } else { value };
        value.to_i128()
    }

    /// The same in double precision, for sums too large to be squared.
    fn estimate(&self) -> Option<f64> {
        let float = |value: i256| value.to_string().parse::<f64>().ok();
        let count = float(i256::from_i128(self.count.into()))?;
        let unit = 10_f64.powi(i32::from(self.scale));
        let (sum, squares) = (float(self.sum)? / unit, float(self.squares)? / unit / unit);
        let divisor = if self.moment.is_sample() { count - 1.0 } else { count };
        let variance = ((squares - sum * sum / count) / divisor).max(0.0);
        Some(if self.moment.is_root() { variance.sqrt() } else { variance })
    }
}

/// The whole part of a square root, rounded.
fn root(value: i256) -> i256 {
    if value <= i256::ZERO {
        return i256::ZERO;
    }
    let two = i256::from_i128(2);
    // Newton's steps from above end at the floor of the root.
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

impl Accumulator for ExactSpread {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <i128 as Sum>::read(&values[0], |_, value| {
            let value = i256::from_i128(value);
            self.count += 1;
            self.sum = self.sum.wrapping_add(value);
            self.squares = self.squares.checked_add(value.wrapping_mul(value)).ok_or_else(|| external(overflow()))?;
            Ok(())
        })
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <i128 as Sum>::read(&values[0], |_, value| {
            let value = i256::from_i128(value);
            self.count -= 1;
            self.sum = self.sum.wrapping_sub(value);
            self.squares = self.squares.wrapping_sub(value.wrapping_mul(value));
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
        self.squares = self.squares.wrapping_add(wide(&states[2]));
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let wide = |value| ScalarValue::Decimal256(Some(value), 76, 0);
        Ok(vec![ScalarValue::Int64(Some(self.count)), wide(self.sum), wide(self.squares)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let scalar = |value| ScalarValue::Decimal128(value, 38, i8::try_from(SCALE).expect("a small constant"));
        if self.count < if self.moment.is_sample() { 2 } else { 1 } {
            return Ok(scalar(None));
        }
        let value = match self.result() {
            Some(value) => value,
            None => {
                let estimate = self.estimate().ok_or_else(|| external(overflow()))?;
                crate::functions::cast::float_to_numeric(estimate, 16, types::numeric::Digits::new(38, SCALE))
                    .map_err(external)?
            }
        };
        Ok(scalar(Some(value)))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Count, mean and sum of squared distances from it.
#[derive(Debug)]
struct FloatSpread {
    moment: Moment,
    count: i64,
    mean: f64,
    squares: f64,
}

impl Accumulator for FloatSpread {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <f64 as Sum>::read(&values[0], |_, value| {
            self.count += 1;
            let distance = value - self.mean;
            self.mean += distance / self.count as f64;
            self.squares += distance * (value - self.mean);
            Ok(())
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        let (means, squares) = (states[1].as_primitive::<Float64Type>(), states[2].as_primitive::<Float64Type>());
        for row in 0..counts.len() {
            let count = counts.value(row);
            if count == 0 {
                continue;
            }
            let total = self.count + count;
            let distance = means.value(row) - self.mean;
            self.squares +=
                squares.value(row) + distance * distance * (self.count as f64) * (count as f64) / total as f64;
            self.mean += distance * count as f64 / total as f64;
            self.count = total;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Int64(Some(self.count)),
            ScalarValue::Float64(Some(self.mean)),
            ScalarValue::Float64(Some(self.squares)),
        ])
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let divisor = if self.moment.is_sample() { self.count - 1 } else { self.count };
        if divisor <= 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let variance = self.squares / divisor as f64;
        Ok(ScalarValue::Float64(Some(if self.moment.is_root() { variance.sqrt() } else { variance })))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
