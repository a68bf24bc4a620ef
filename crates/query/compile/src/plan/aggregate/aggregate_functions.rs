//! Aggregate functions: the states that they need and the final values computed from them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use engine::aggregate::AggregateKind;
use engine::arrow_convert::{is_comparable, physical_type};
use engine::expression::{Division, Expression};
use engine::{Bounds, PhysicalType};
use plan::StandardAggregate;
use types::numeric::{checked_power_of_ten, power_of_ten};
use types::sql_type::NUMERIC_PRECISION_MAX;

use crate::arrow_functions::{FinishAggregate, FinishFloatVariance, FinishVariance};

/// Aggregate functions that the engine supports.
#[derive(Debug, Clone)]
pub(in crate::plan) enum AggregateFunction {
    CountRows,
    Count,
    /// `min` and `bool_and`, with the physical type of the argument.
    Min(PhysicalType),
    /// `max` and `bool_or`, with the physical type of the argument.
    Max(PhysicalType),
    /// `sum` and `avg`, with the state of the sum and its Arrow type.
    Total {
        sum: AggregateKind,
        form: DataType,
    },
    /// Variances and standard deviations of exact numbers: from count, sum and sum of squares.
    Variance {
        sum: AggregateKind,
    },
    /// Variances and standard deviations of floats.
    FloatVariance,
}

/// Input of a state: all rows, or the non-NULL values of the argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateInput {
    Rows,
    Values,
}

impl AggregateFunction {
    /// Returns the aggregate of a call; `None` for DISTINCT and for unsupported calls.
    pub(in crate::plan) fn from_call(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Self> {
        let is_plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty() && !aggregate.ignore_nulls();
        let arguments = aggregate.expressions();
        let [argument] = arguments.as_slice() else { return None };
        let data_type = argument.data_type(schema).ok()?;
        let is_constant = argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
        let is_ordered = is_comparable(&data_type) && data_type != DataType::Boolean;
        if !is_plain {
            return None;
        }
        match StandardAggregate::from_function(aggregate.fun())? {
            StandardAggregate::Count if is_constant => Some(Self::CountRows),
            StandardAggregate::Count => Some(Self::Count),
            StandardAggregate::Min if is_ordered => physical_type(&data_type).map(Self::Min),
            StandardAggregate::Max if is_ordered => physical_type(&data_type).map(Self::Max),
            StandardAggregate::BoolAnd if data_type == DataType::Boolean => Some(Self::Min(PhysicalType::Bools)),
            StandardAggregate::BoolOr if data_type == DataType::Boolean => Some(Self::Max(PhysicalType::Bools)),
            StandardAggregate::Sum | StandardAggregate::Average => {
                let fields = aggregate.state_fields().ok()?;
                let form = fields.first()?.data_type().clone();
                let sum = match (&data_type, &form) {
                    (DataType::Float32 | DataType::Float64, DataType::Float64) => AggregateKind::FloatSum,
                    (
                        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..),
                        DataType::Decimal128(..),
                    ) => AggregateKind::Sum,
                    _ => return None,
                };
                (fields.len() == 2).then_some(Self::Total { sum, form })
            }
            StandardAggregate::Variance => match data_type {
                // No sum of integers needs more than 128 bits, and `sum` and `avg` of the same argument share that
                // state.
                DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(Self::Variance { sum: AggregateKind::Sum }),
                DataType::Decimal128(..) => Some(Self::Variance { sum: AggregateKind::Sum256 { sums_squares: false } }),
                DataType::Float32 | DataType::Float64 => Some(Self::FloatVariance),
                _ => None,
            },
            StandardAggregate::Min
            | StandardAggregate::Max
            | StandardAggregate::BoolAnd
            | StandardAggregate::BoolOr
            | StandardAggregate::Grouping
            | StandardAggregate::ArrayAgg
            | StandardAggregate::StringAgg
            | StandardAggregate::JsonAgg
            | StandardAggregate::PercentileCont
            | StandardAggregate::PercentileDisc
            | StandardAggregate::Mode => None,
        }
    }

    /// Returns the argument, if the aggregate reads it.
    pub(in crate::plan) fn argument(&self, aggregate: &AggregateFunctionExpr) -> Option<Arc<dyn PhysicalExpr>> {
        match self {
            Self::CountRows => None,
            _ => aggregate.expressions().into_iter().next(),
        }
    }

    /// Returns the aggregate over distinct values; `None` if duplicates do not matter.
    pub(super) fn over_distinct(self) -> Option<Self> {
        match self {
            Self::CountRows => Some(Self::Count),
            Self::Min(_) | Self::Max(_) => None,
            other => Some(other),
        }
    }

    /// Returns the final value of `aggregate`; `state` returns the column of each of its states.
    pub(super) fn final_value(
        self,
        aggregate: &Arc<AggregateFunctionExpr>,
        mut state: impl FnMut(AggregateKind, StateInput) -> Expression,
    ) -> Expression {
        match self {
            Self::CountRows => state(AggregateKind::Count, StateInput::Rows),
            Self::Count => state(AggregateKind::Count, StateInput::Values),
            Self::Min(form) => state(AggregateKind::Min(form), StateInput::Values),
            Self::Max(form) => state(AggregateKind::Max(form), StateInput::Values),
            Self::Variance { sum } => {
                let arguments = variance_states(sum).map(|kept| state(kept, StateInput::Values));
                variance_value(aggregate, sum, arguments)
            }
            Self::FloatVariance => {
                let function = Arc::new(FinishFloatVariance::new(aggregate));
                Expression::ArrowCall { function, arguments: vec![state(AggregateKind::Moments, StateInput::Values)] }
            }
            Self::Total { sum, form } => {
                let (total, count) = (state(sum, StateInput::Values), state(AggregateKind::Count, StateInput::Values));
                total_value(aggregate, form, total, count)
            }
        }
    }
}

/// States of a variance or standard deviation of exact numbers.
pub(in crate::plan) fn variance_states(sum: AggregateKind) -> [AggregateKind; 3] {
    [AggregateKind::Count, sum, AggregateKind::Sum256 { sums_squares: true }]
}

/// Returns the value of `sum` or `avg` from a total of type `form` and a count; NULL if the count is zero.
pub(in crate::plan) fn total_value(
    aggregate: &Arc<AggregateFunctionExpr>,
    form: DataType,
    total: Expression,
    count: Expression,
) -> Expression {
    let sum = |total: Expression, limits| Expression::FinalizeSum {
        sum: Box::new(total),
        count: Box::new(count.clone()),
        limits,
    };
    let beyond = power_of_ten(NUMERIC_PRECISION_MAX);
    let digits_of_numeric = Bounds { min: 1 - beyond, max: beyond - 1 };
    let gives = aggregate.field();
    // A sum of `real` is computed in double precision and has to be rounded.
    let is_sum = StandardAggregate::from_function(aggregate.fun()) == Some(StandardAggregate::Sum);
    if is_sum && *gives.data_type() != DataType::Float32 {
        let limits = match gives.data_type() {
            DataType::Int64 => Some(Bounds::I64),
            DataType::Decimal128(..) => Some(digits_of_numeric),
            _ => None,
        };
        return sum(total, limits);
    }
    if (&form, gives.data_type()) == (&DataType::Float64, &DataType::Float64) {
        let values = Expression::ToFloat { value: Box::new(count.clone()), scale: 0 };
        return Expression::FloatDivide {
            left: Box::new(sum(total, None)),
            right: Box::new(values),
            is_checked: false,
        };
    }
    let digits = match (&form, gives.data_type()) {
        (DataType::Decimal128(_, has), DataType::Decimal128(_, gets)) => gets.checked_sub(*has),
        _ => None,
    };
    let factor = digits.and_then(|digits| checked_power_of_ten(u8::try_from(digits).ok()?));
    let function = Arc::new(FinishAggregate::new(aggregate, vec![form, DataType::Int64]));
    let original = Expression::ArrowCall { function, arguments: vec![total.clone(), count.clone()] };
    let Some(factor) = factor else { return original };
    let quotient = Expression::Divide {
        division: Division::Rounded { factor },
        left: Box::new(sum(total, None)),
        right: Box::new(count),
        limits: digits_of_numeric,
    };
    Expression::Fallible { value: Box::new(quotient), fallback: Arc::new(original) }
}

/// Returns a variance or standard deviation from count, sum and sum of squares.
pub(in crate::plan) fn variance_value(
    aggregate: &Arc<AggregateFunctionExpr>,
    sum: AggregateKind,
    arguments: [Expression; 3],
) -> Expression {
    Expression::ArrowCall { function: Arc::new(FinishVariance::new(aggregate, sum)), arguments: arguments.into() }
}
