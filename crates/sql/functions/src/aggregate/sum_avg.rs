//! `sum` and `avg` with PostgreSQL's result types: integers sum to `bigint` or `numeric`, and average to `numeric`.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, IntervalUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use types::SqlType;
use types::numeric::NumericPrecision;

use super::distinct::DistinctAccumulator;
use super::interval::IntervalTotal;
use super::running_total::TotalValue;
use super::sliding_total::SlidingTotal;
use super::sum_avg_groups::TotalGroups;
use crate::definition::missing_function;
use crate::external;
use crate::type_rules::plain_type_name;

/// `sum` or `avg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TotalKind {
    Sum,
    Average,
}

/// The aggregate `sum` or `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SumOrAverage {
    kind: TotalKind,
    signature: Signature,
}

impl SumOrAverage {
    pub(super) fn new(kind: TotalKind) -> Self {
        Self { kind, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// Rule to compute the result from a total.
#[derive(Debug, Clone, Copy)]
pub(super) struct TotalRule {
    pub(super) kind: TotalKind,
    /// Number of digits by which an average scales its total before it divides.
    pub(super) shift: u8,
}

/// Returns the type of totals in partial states.
pub(super) fn state_type(input: &DataType) -> DataType {
    match input {
        DataType::Decimal128(_, scale) => DataType::Decimal128(38, *scale),
        DataType::Float32 | DataType::Float64 => DataType::Float64,
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Decimal128(38, 0),
    }
}

fn is_floating(input: &DataType) -> bool {
    matches!(input, DataType::Float32 | DataType::Float64)
}

fn shape(kind: TotalKind, input: &DataType, output: &DataType) -> TotalRule {
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal128(_, scale) => u8::try_from(*scale).unwrap_or(0),
        _ => 0,
    };
    TotalRule { kind, shift: scale(output).saturating_sub(scale(input)) }
}

impl AggregateUDFImpl for SumOrAverage {
    fn name(&self) -> &str {
        match self.kind {
            TotalKind::Sum => "sum",
            TotalKind::Average => "avg",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(arguments).map(|_| arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let input = SqlType::from_arrow_type(&arguments[0]).unwrap_or(SqlType::Text);
        let result = match (self.kind, &input) {
            (TotalKind::Sum, SqlType::Int2 | SqlType::Int4) => SqlType::Int8,
            (TotalKind::Sum, SqlType::Int8 | SqlType::Numeric { .. }) => {
                NumericPrecision::from_sql_type(&input).expect("an exact number").sum_result().sql_type()
            }
            (TotalKind::Average, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Numeric { .. }) => {
                NumericPrecision::from_sql_type(&input).expect("an exact number").average_result().sql_type()
            }
            (TotalKind::Sum, SqlType::Float4) => SqlType::Float4,
            (TotalKind::Sum | TotalKind::Average, SqlType::Float8) | (TotalKind::Average, SqlType::Float4) => {
                SqlType::Float8
            }
            (_, SqlType::Interval) => SqlType::Interval,
            (_, other) => return Err(external(missing_function(self.name(), &plain_type_name(other)))),
        };
        Ok(result.arrow_type())
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let input = args.input_fields[0].data_type();
        if args.is_distinct {
            return Ok(DistinctAccumulator::state_fields(args.name, input));
        }
        Ok(vec![
            Arc::new(Field::new(format!("{}[total]", args.name), state_type(input), true)),
            Arc::new(Field::new(format!("{}[count]", args.name), DataType::Int64, true)),
        ])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let input = args.expr_fields[0].data_type();
        let output = args.return_field.data_type().clone();
        let shape = shape(self.kind, input, &output);
        let inner: Box<dyn Accumulator> = match input {
            DataType::Interval(_) => Box::new(IntervalTotal::new(self.kind)),
            input if is_floating(input) => Box::new(TotalAccumulator::<f64>::new(shape, input, output)),
            input => Box::new(TotalAccumulator::<i128>::new(shape, input, output)),
        };
        Ok(if args.is_distinct { Box::new(DistinctAccumulator::new(inner, input.clone())) } else { inner })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let input = args.expr_fields[0].data_type();
        let output = args.return_field.data_type().clone();
        if is_floating(input) {
            return Ok(Box::new(SlidingTotal::new(shape(self.kind, input, &output), output)));
        }
        self.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct && !matches!(args.expr_fields[0].data_type(), DataType::Interval(_))
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let input = args.expr_fields[0].data_type();
        let output = args.return_field.data_type().clone();
        let shape = shape(self.kind, input, &output);
        Ok(if is_floating(input) {
            Box::new(TotalGroups::<f64>::new(shape, state_type(input), output))
        } else {
            Box::new(TotalGroups::<i128>::new(shape, state_type(input), output))
        })
    }
}

/// Accumulator of one total: without GROUP BY, and in windows.
#[derive(Debug)]
struct TotalAccumulator<T> {
    shape: TotalRule,
    state: DataType,
    output: DataType,
    total: T,
    count: i64,
}

impl<T: TotalValue> TotalAccumulator<T> {
    fn new(shape: TotalRule, input: &DataType, output: DataType) -> Self {
        Self { shape, state: state_type(input), output, total: T::default(), count: 0 }
    }
}

impl<T: TotalValue + FinishTotal> Accumulator for TotalAccumulator<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (mut total, mut count) = (self.total, self.count);
        T::read(&values[0], |_, value| {
            total = total.add(value)?;
            count += 1;
            Ok(())
        })?;
        (self.total, self.count) = (total, count);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        T::read(&values[0], |_, value| {
            self.total = self.total.subtract(value);
            self.count -= 1;
            Ok(())
        })
    }

    fn supports_retract_batch(&self) -> bool {
        // Subtraction of floats is not exact.
        matches!(self.state, DataType::Decimal128(..))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let finished = T::finish(vec![self.total], &[self.count], self.shape, &self.output)?;
        ScalarValue::try_from_array(&finished, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let total = T::array(vec![self.total], &self.state, None)?;
        Ok(vec![ScalarValue::try_from_array(&total, 0)?, ScalarValue::Int64(Some(self.count))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        T::read(&states[0], |_, value| {
            self.total = self.total.add(value)?;
            Ok(())
        })?;
        self.count += states[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        Ok(())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// Computation of the aggregate's values from totals and counts.
pub(super) trait FinishTotal: TotalValue {
    fn finish(totals: Vec<Self>, counts: &[i64], shape: TotalRule, output: &DataType) -> Result<ArrayRef>;
}
