//! `variance`, `stddev` and their variants: exact for exact numbers, as `numeric`; Welford's algorithm for floats.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use types::SqlType;

use super::distinct::DistinctAccumulator;
use super::exact_variance::{ExactVariance, ExactVarianceGroups, RESULT_SCALE};
use super::running_total::TotalValue;
use crate::definition::missing_function;
use crate::external;
use crate::type_rules::plain_type_name;

/// Statistic: variance or standard deviation, of a population or a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum VarianceKind {
    VariancePopulation,
    VarianceSample,
    DeviationPopulation,
    DeviationSample,
}

impl VarianceKind {
    pub(super) fn is_sample(self) -> bool {
        matches!(self, VarianceKind::VarianceSample | VarianceKind::DeviationSample)
    }

    pub(super) fn is_root(self) -> bool {
        matches!(self, VarianceKind::DeviationPopulation | VarianceKind::DeviationSample)
    }
}

/// Variance or standard deviation aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Variance {
    name: &'static str,
    kind: VarianceKind,
    signature: Signature,
}

impl Variance {
    pub(super) fn new(name: &'static str, moment: VarianceKind) -> Self {
        Self { name, kind: moment, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

fn is_floating(input: &DataType) -> bool {
    matches!(input, DataType::Float32 | DataType::Float64)
}

impl AggregateUDFImpl for Variance {
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
                Ok(SqlType::Numeric { precision: 38, scale: RESULT_SCALE }.arrow_type())
            }
            input if is_floating(input) => Ok(DataType::Float64),
            other => {
                let shown = SqlType::from_arrow_type(other).unwrap_or(SqlType::Text);
                Err(external(missing_function(self.name, &plain_type_name(&shown))))
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
                Box::new(FloatVariance { kind: self.kind, count: 0, mean: 0.0, squared_deviations: 0.0 })
            }
            input => Box::new(ExactVariance::new(self.kind, scale(input))),
        };
        Ok(if args.is_distinct { Box::new(DistinctAccumulator::new(inner, input.clone())) } else { inner })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct && !is_floating(args.expr_fields[0].data_type())
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(ExactVarianceGroups::new(self.kind, scale(args.expr_fields[0].data_type()))))
    }
}

/// Returns the scale of the input type.
fn scale(input: &DataType) -> u8 {
    if let DataType::Decimal128(_, scale) = input { u8::try_from(*scale).unwrap_or(0) } else { 0 }
}

/// Count, mean and sum of squared deviations from the mean (Welford's algorithm).
#[derive(Debug)]
struct FloatVariance {
    kind: VarianceKind,
    count: i64,
    mean: f64,
    squared_deviations: f64,
}

impl Accumulator for FloatVariance {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        <f64 as TotalValue>::read(&values[0], |_, value| {
            self.count += 1;
            let distance = value - self.mean;
            self.mean += distance / self.count as f64;
            self.squared_deviations += distance * (value - self.mean);
            Ok(())
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[0].as_primitive::<Int64Type>();
        let (means, squared_deviations) =
            (states[1].as_primitive::<Float64Type>(), states[2].as_primitive::<Float64Type>());
        for row in 0..counts.len() {
            let count = counts.value(row);
            if count == 0 {
                continue;
            }
            if self.count == 0 {
                // Without this case, the distance to an undefined mean could be infinite, and zero times infinity is
                // NaN.
                (self.count, self.mean, self.squared_deviations) =
                    (count, means.value(row), squared_deviations.value(row));
                continue;
            }
            let total = self.count + count;
            let distance = means.value(row) - self.mean;
            self.squared_deviations += squared_deviations.value(row)
                + distance * distance * (self.count as f64) * (count as f64) / total as f64;
            self.mean += distance * count as f64 / total as f64;
            self.count = total;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![
            ScalarValue::Int64(Some(self.count)),
            ScalarValue::Float64(Some(self.mean)),
            ScalarValue::Float64(Some(self.squared_deviations)),
        ])
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let divisor = if self.kind.is_sample() { self.count - 1 } else { self.count };
        if divisor <= 0 {
            return Ok(ScalarValue::Float64(None));
        }
        let variance = self.squared_deviations / divisor as f64;
        Ok(ScalarValue::Float64(Some(if self.kind.is_root() { variance.sqrt() } else { variance })))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
