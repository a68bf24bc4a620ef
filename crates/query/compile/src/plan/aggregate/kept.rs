//! Aggregate functions: the states that they need and the final values computed from them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use engine::aggregate::Kept;
use engine::arrow_form::{form, is_compared};
use engine::expression::{Division, Expression};
use engine::{Bounds, Form};
use types::numeric::{checked_power_of_ten, power_of_ten};
use types::sql_type::NUMERIC_PRECISION_MAX;

use crate::foreign::{FinishAggregate, FinishMoments, FinishSpread};

/// Aggregate functions that the engine supports.
#[derive(Debug, Clone)]
pub(in crate::plan) enum Aggregate {
    CountRows,
    Count,
    /// `min` and `bool_and`, with the physical type of the argument.
    Min(Form),
    /// `max` and `bool_or`, with the physical type of the argument.
    Max(Form),
    /// `sum` and `avg`, with the state of the sum and its Arrow type.
    Total {
        sum: Kept,
        form: DataType,
    },
    /// Variances and standard deviations of exact numbers: from count, sum and sum of squares.
    Spread {
        sum: Kept,
    },
    /// Variances and standard deviations of floats.
    FloatSpread,
}

/// Input of a state: all rows, or the non-NULL values of the argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Rows,
    Values,
}

impl Aggregate {
    /// Returns the aggregate of a call; `None` for DISTINCT and for unsupported calls.
    pub(in crate::plan) fn of(aggregate: &AggregateFunctionExpr, schema: &Schema) -> Option<Self> {
        let is_plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty() && !aggregate.ignore_nulls();
        let arguments = aggregate.expressions();
        let [argument] = arguments.as_slice() else { return None };
        let data_type = argument.data_type(schema).ok()?;
        let is_constant = argument.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
        let is_ordered = is_compared(&data_type) && data_type != DataType::Boolean;
        match aggregate.fun().name() {
            _ if !is_plain => None,
            "count" if is_constant => Some(Self::CountRows),
            "count" => Some(Self::Count),
            "min" if is_ordered => form(&data_type).map(Self::Min),
            "max" if is_ordered => form(&data_type).map(Self::Max),
            "bool_and" if data_type == DataType::Boolean => Some(Self::Min(Form::Bools)),
            "bool_or" if data_type == DataType::Boolean => Some(Self::Max(Form::Bools)),
            "sum" | "avg" => {
                let fields = aggregate.state_fields().ok()?;
                let form = fields.first()?.data_type().clone();
                let sum = match (&data_type, &form) {
                    (DataType::Float32 | DataType::Float64, DataType::Float64) => Kept::FloatSum,
                    (
                        DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(..),
                        DataType::Decimal128(..),
                    ) => Kept::Sum,
                    _ => return None,
                };
                (fields.len() == 2).then_some(Self::Total { sum, form })
            }
            "variance" | "var_samp" | "var_pop" | "stddev" | "stddev_samp" | "stddev_pop" => match data_type {
                // No sum of integers needs more than 128 bits, and `sum` and `avg` of the same argument share that
                // state.
                DataType::Int16 | DataType::Int32 | DataType::Int64 => Some(Self::Spread { sum: Kept::Sum }),
                DataType::Decimal128(..) => Some(Self::Spread { sum: Kept::Sum256 { of_squares: false } }),
                DataType::Float32 | DataType::Float64 => Some(Self::FloatSpread),
                _ => None,
            },
            _ => None,
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
    pub(super) fn of_once(self) -> Option<Self> {
        match self {
            Self::CountRows => Some(Self::Count),
            Self::Min(_) | Self::Max(_) => None,
            other => Some(other),
        }
    }

    /// Returns the final value of `aggregate`; `state` returns the column of each of its states.
    pub(super) fn finished(
        self,
        aggregate: &Arc<AggregateFunctionExpr>,
        mut state: impl FnMut(Kept, Of) -> Expression,
    ) -> Expression {
        match self {
            Self::CountRows => state(Kept::Count, Of::Rows),
            Self::Count => state(Kept::Count, Of::Values),
            Self::Min(form) => state(Kept::Min(form), Of::Values),
            Self::Max(form) => state(Kept::Max(form), Of::Values),
            Self::Spread { sum } => {
                let arguments = spread_states(sum).map(|kept| state(kept, Of::Values));
                spread_of(aggregate, sum, arguments)
            }
            Self::FloatSpread => {
                let function = Arc::new(FinishMoments::new(aggregate));
                Expression::Foreign { function, arguments: vec![state(Kept::Moments, Of::Values)] }
            }
            Self::Total { sum, form } => {
                let (total, count) = (state(sum, Of::Values), state(Kept::Count, Of::Values));
                total_of(aggregate, form, total, count)
            }
        }
    }
}

/// States of a variance or standard deviation of exact numbers.
pub(in crate::plan) fn spread_states(sum: Kept) -> [Kept; 3] {
    [Kept::Count, sum, Kept::Sum256 { of_squares: true }]
}

/// Returns the value of `sum` or `avg` from a total of type `form` and a count; NULL if the count is zero.
pub(in crate::plan) fn total_of(
    aggregate: &Arc<AggregateFunctionExpr>,
    form: DataType,
    total: Expression,
    count: Expression,
) -> Expression {
    let sum =
        |total: Expression, limits| Expression::Sum { sum: Box::new(total), count: Box::new(count.clone()), limits };
    let beyond = power_of_ten(NUMERIC_PRECISION_MAX);
    let digits_of_numeric = Bounds { min: 1 - beyond, max: beyond - 1 };
    let gives = aggregate.field();
    // A sum of `real` is computed in double precision and has to be rounded.
    if aggregate.fun().name() == "sum" && *gives.data_type() != DataType::Float32 {
        let limits = match gives.data_type() {
            DataType::Int64 => Some(Bounds::I64),
            DataType::Decimal128(..) => Some(digits_of_numeric),
            _ => None,
        };
        return sum(total, limits);
    }
    if (&form, gives.data_type()) == (&DataType::Float64, &DataType::Float64) {
        let values = Expression::Float { value: Box::new(count.clone()), scale: 0 };
        return Expression::FloatQuotient {
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
    let original = Expression::Foreign { function, arguments: vec![total.clone(), count.clone()] };
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
pub(in crate::plan) fn spread_of(
    aggregate: &Arc<AggregateFunctionExpr>,
    sum: Kept,
    arguments: [Expression; 3],
) -> Expression {
    Expression::Foreign { function: Arc::new(FinishSpread::new(aggregate, sum)), arguments: arguments.into() }
}
