//! Scalar expressions over the columns of a batch.
//!
//! - `arithmetic.rs`, `division.rs`, `rounding.rs`, `sign.rs`, `float_functions.rs`: numbers
//! - `compare.rs`, `logic.rs`, `case.rs`: comparisons, three-valued logic and CASE
//! - `text_functions.rs`, `text_operators.rs`, `date.rs`: strings, dates and timestamps
//! - `arrow_function.rs`, `fallback.rs`, `evaluation_state.rs`: functions over Arrow arrays, the slow path of fast
//!   loops, and results cached between batches
//! - `columnar_value.rs`: the value of an expression, one per row or one for all rows
//! - `digest.rs`: digests that identify expressions

mod arithmetic;
mod arrow_function;
mod case;
mod columnar_value;
mod compare;
mod date;
mod digest;
mod division;
mod evaluation_state;
mod fallback;
mod float_functions;
mod logic;
mod rounding;
mod sign;
mod text_functions;
mod text_operators;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use arithmetic::ArithmeticOperation;
pub use arrow_function::ArrowFunction;
pub use blocks::{Comparison, LikePattern, TextCondition};
pub(crate) use columnar_value::ColumnarValue;
pub(crate) use compare::float_order;
pub use date::TimeUnit;
pub use division::Division;
pub use evaluation_state::{CallCosts, ExpressionState, function_id};
pub use fallback::Fallback;
pub use rounding::Rounding;
pub use sign::SignOperation;
pub use text_functions::{TextCall, TextFunction};
use types::{DatePart, Interval};

use crate::batch_splitting::{ErrorGranularity, compute_in_portions};
use crate::vector::concat_bitmaps;
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Scalar expression over the columns of a batch. "Exact numbers" are integers and numerics; a numeric is stored as
/// its unscaled digits.
#[derive(Debug, Clone)]
pub enum Expression {
    /// Column at this position.
    Column(usize),
    /// Constant, stored as a column of one row.
    Constant(Column),
    /// Addition, subtraction or multiplication of exact numbers.
    Arithmetic {
        operation: ArithmeticOperation,
        left: Box<Expression>,
        right: Box<Expression>,
        /// Powers of ten that the sides are multiplied by first, so that both have the same scale.
        factors: (i64, i64),
        /// Range of the result's type.
        result_range: Bounds,
    },
    /// Addition, subtraction or multiplication of `float8`.
    FloatArithmetic {
        operation: ArithmeticOperation,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    /// Division of exact numbers.
    Divide {
        division: Division,
        left: Box<Expression>,
        right: Box<Expression>,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Division of `float8`.
    FloatDivide {
        left: Box<Expression>,
        right: Box<Expression>,
        /// Whether division by zero, overflow and underflow are errors. They are not in an average, as in PostgreSQL.
        is_checked: bool,
    },
    /// Conversion of an exact number with `scale` digits after the decimal point to `float8`.
    ToFloat {
        value: Box<Expression>,
        scale: u8,
    },
    /// Conversion of a `float8` to the nearest integer.
    FloatToInt {
        value: Box<Expression>,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Rounding of a `float8` to a whole number.
    FloatRound {
        rounding: Rounding,
        value: Box<Expression>,
    },
    /// Negation or absolute value of a `float8`.
    FloatSign {
        sign: SignOperation,
        value: Box<Expression>,
    },
    /// Rounding of an exact number: it is divided by `divisor`, rounded, and multiplied by `factor`.
    Round {
        rounding: Rounding,
        value: Box<Expression>,
        divisor: i128,
        factor: i128,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Negation or absolute value of an exact number.
    Sign {
        sign: SignOperation,
        value: Box<Expression>,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Comparison of exact numbers, multiplied by their factors, or of floats in PostgreSQL's order.
    Compare {
        comparison: Comparison,
        left: Box<Expression>,
        right: Box<Expression>,
        factors: (i64, i64),
    },
    /// Comparison of strings by their bytes.
    CompareTexts {
        comparison: Comparison,
        left: Box<Expression>,
        right: Box<Expression>,
    },
    /// Function of one string.
    TextCall {
        call: Arc<TextCall>,
        value: Box<Expression>,
    },
    /// Concatenation of strings.
    Concat(Vec<Expression>),
    /// Field of a date or of a timestamp without time zone (EXTRACT).
    DatePart {
        part: DatePart,
        unit: TimeUnit,
        value: Box<Expression>,
        /// Whether the result is a `float8`.
        is_float: bool,
    },
    /// Sum of an interval and a date or timestamp without time zone.
    AddInterval {
        value: Box<Expression>,
        unit: TimeUnit,
        interval: Interval,
    },
    /// Whether an exact number is in a list of values, which is in ascending order.
    InList {
        value: Box<Expression>,
        list: Arc<[i64]>,
        is_negated: bool,
    },
    /// Whether a `float8` is in a list.
    FloatInList {
        value: Box<Expression>,
        list: Arc<[f64]>,
        is_negated: bool,
    },
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    IsNull {
        value: Box<Expression>,
        is_negated: bool,
    },
    /// Value of the first branch whose condition is true; otherwise the value of `otherwise`, or NULL without one.
    Case {
        branches: Vec<(Expression, Expression)>,
        otherwise: Option<Box<Expression>>,
    },
    /// Result of SUM: the sum, or NULL if the count of summed values is 0.
    FinalizeSum {
        sum: Box<Expression>,
        count: Box<Expression>,
        /// Range of the result's type, checked with SQLSTATE 22003; `None` if the sum is only part of a computation.
        limits: Option<Bounds>,
    },
    /// Value that may be out of range; the fallback then evaluates the batch.
    Fallible {
        value: Box<Expression>,
        fallback: Arc<dyn Fallback>,
    },
    /// Function over Arrow arrays.
    ArrowCall {
        function: Arc<dyn ArrowFunction>,
        arguments: Vec<Expression>,
    },
}

impl Expression {
    /// Computes the value of each row.
    ///
    /// # Errors
    /// Returns an error if a value cannot be computed, or if a column's physical type is not the one that the
    /// expression was compiled for.
    pub fn evaluate(&self, batch: &Batch, memory: &mut ExpressionState) -> Result<Column> {
        self.compute(batch, memory)?.into_column(batch.rows)
    }

    /// Returns the rows for which the expression is true.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::evaluate`].
    pub fn is_true(&self, batch: &Batch, memory: &mut ExpressionState) -> Result<Bitmap> {
        logic::true_rows(self.compute(batch, memory)?, batch.rows)
    }

    /// Works like [`Expression::is_true`], but evaluates few rows at a time if the values are large.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::evaluate`].
    pub fn is_true_in_portions(&self, batch: &Batch, memory: &mut ExpressionState) -> Result<Bitmap> {
        let mut portions = Vec::new();
        compute_in_portions(
            batch.clone(),
            ErrorGranularity::Batch,
            |portion| self.is_true(&portion, memory),
            |bits| {
                portions.push(bits);
                Ok(())
            },
        )?;
        match portions.len() {
            1 => {
                portions.pop().ok_or(Error::Internal("the evaluation of an expression over a batch returned no result"))
            }
            _ => Ok(concat_bitmaps(portions.iter().map(|bits| (bits.rows(), Some(bits))), batch.rows)),
        }
    }

    /// Computes the expression, as one value for all rows if it is constant.
    pub(crate) fn compute(&self, batch: &Batch, memory: &mut ExpressionState) -> Result<ColumnarValue> {
        match self {
            Self::Column(at) => Ok(ColumnarValue::from_column(batch.columns[*at].clone())),
            Self::Constant(column) => Ok(ColumnarValue { column: column.clone(), is_scalar: true }),
            Self::Arithmetic { operation, left, right, factors, result_range: limits } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                arithmetic::compute_exact(*operation, &left, &right, *factors, *limits, batch.rows)
            }
            Self::FloatArithmetic { operation, left, right } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                arithmetic::compute_floats(*operation, &left, &right, batch.rows)
            }
            Self::Divide { division, left, right, limits } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                division::divide_exact(*division, &left, &right, *limits, batch.rows)
            }
            Self::FloatDivide { left, right, is_checked } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                division::divide_floats(&left, &right, *is_checked, batch.rows)
            }
            Self::ToFloat { value, scale } => float_functions::from_exact(value.compute(batch, memory)?, *scale),
            Self::FloatToInt { value, limits } => float_functions::to_integers(value.compute(batch, memory)?, *limits),
            Self::FloatRound { rounding, value } => {
                float_functions::round_floats(value.compute(batch, memory)?, *rounding)
            }
            Self::FloatSign { sign, value } => float_functions::apply_sign(value.compute(batch, memory)?, *sign),
            Self::Round { rounding, value, divisor, factor, limits } => {
                rounding::round_exact(*rounding, value.compute(batch, memory)?, (*divisor, *factor), *limits)
            }
            Self::Sign { sign, value, limits } => sign::apply_sign(value.compute(batch, memory)?, *sign, *limits),
            Self::AddInterval { value, unit, interval: by } => {
                date::add_interval(value.compute(batch, memory)?, *unit, *by)
            }
            Self::CompareTexts { comparison, left, right } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                text_operators::compare(*comparison, &left, &right, batch.rows)
            }
            Self::TextCall { call, value } => call.compute(value.compute(batch, memory)?, memory),
            Self::Concat(parts) => {
                let parts = parts.iter().map(|part| part.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
                text_operators::concat(&parts, batch.rows)
            }
            Self::DatePart { part, unit, value, is_float } => {
                date::extract(value.compute(batch, memory)?, *part, *unit, *is_float)
            }
            Self::Compare { comparison, left, right, factors } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                compare::compare_numbers(*comparison, &left, &right, *factors, batch.rows)
            }
            Self::InList { value, list, is_negated } => {
                compare::in_list(&value.compute(batch, memory)?, list, *is_negated, batch.rows)
            }
            Self::FloatInList { value, list, is_negated } => {
                compare::float_in_list(&value.compute(batch, memory)?, list, *is_negated, batch.rows)
            }
            Self::And(parts) => logic::and(parts, batch, memory),
            Self::Or(parts) => logic::or(parts, batch, memory),
            Self::Not(inner) => logic::not(inner.compute(batch, memory)?),
            Self::IsNull { value, is_negated } => {
                let value = value.compute(batch, memory)?;
                let valid =
                    value.validity(batch.rows).map_or_else(|| Bitmap::filled(batch.rows, true), |bits| (*bits).clone());
                let bits = if *is_negated { valid } else { valid.not() };
                Ok(ColumnarValue::from_column(Column::new(ColumnData::Bools(Arc::new(bits)))))
            }
            Self::Case { branches, otherwise } => case::evaluate_case(branches, otherwise.as_deref(), batch, memory),
            Self::FinalizeSum { sum, count, limits } => {
                logic::finalize_sum(sum.compute(batch, memory)?, &count.compute(batch, memory)?, *limits)
            }
            Self::Fallible { value, fallback } => match value.compute(batch, memory) {
                Err(error) if error.is_row_error() => fallback.expression()?.compute(batch, memory),
                computed => computed,
            },
            Self::ArrowCall { function, arguments } => arrow_function::call(function, arguments, batch, memory),
        }
    }

    /// Adds the positions of the columns that the expression reads.
    pub fn collect_columns(&self, positions: &mut Vec<usize>) {
        match self {
            Self::Column(at) => positions.push(*at),
            other => other.children().into_iter().for_each(|child| child.collect_columns(positions)),
        }
    }

    /// Returns whether equal inputs always give equal results.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        !matches!(self, Self::ArrowCall { function, .. } if !function.is_immutable())
            && self.children().into_iter().all(Self::is_immutable)
    }

    /// Returns whether the expression has a value for every row, whatever the values of its columns are.
    #[must_use]
    pub fn never_fails(&self) -> bool {
        let is_safe = match self {
            Self::Column(_)
            | Self::Constant(_)
            | Self::CompareTexts { .. }
            | Self::TextCall { .. }
            | Self::InList { .. }
            | Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::IsNull { .. }
            | Self::Case { .. }
            | Self::ToFloat { .. }
            | Self::FloatRound { .. }
            | Self::FloatSign { .. }
            | Self::FloatInList { .. } => true,
            // Scaling by a factor may overflow 128 bits.
            Self::Compare { factors, .. } => *factors == (1, 1),
            Self::Arithmetic { .. }
            | Self::FloatArithmetic { .. }
            | Self::FloatDivide { .. }
            | Self::Divide { .. }
            | Self::FloatToInt { .. }
            | Self::Round { .. }
            | Self::Sign { .. }
            | Self::AddInterval { .. }
            | Self::Concat(_)
            | Self::DatePart { .. }
            | Self::FinalizeSum { .. }
            | Self::Fallible { .. }
            | Self::ArrowCall { .. } => false,
        };
        is_safe && self.children().into_iter().all(Self::never_fails)
    }

    /// Adds the Arrow functions that the expression calls.
    pub fn collect_arrow_functions<'a>(&'a self, functions: &mut Vec<&'a dyn ArrowFunction>) {
        if let Self::ArrowCall { function, .. } = self {
            functions.push(function.as_ref());
        }
        self.children().into_iter().for_each(|child| child.collect_arrow_functions(functions));
    }

    /// Returns the direct subexpressions.
    fn children(&self) -> Vec<&Self> {
        match self {
            Self::Column(_) | Self::Constant(_) => Vec::new(),
            Self::Arithmetic { left, right, .. }
            | Self::FloatArithmetic { left, right, .. }
            | Self::Compare { left, right, .. }
            | Self::CompareTexts { left, right, .. }
            | Self::Divide { left, right, .. }
            | Self::FloatDivide { left, right, .. }
            | Self::FinalizeSum { sum: left, count: right, .. } => vec![left, right],
            Self::InList { value, .. }
            | Self::IsNull { value, .. }
            | Self::TextCall { value, .. }
            | Self::DatePart { value, .. }
            | Self::ToFloat { value, .. }
            | Self::FloatToInt { value, .. }
            | Self::FloatRound { value, .. }
            | Self::FloatSign { value, .. }
            | Self::Round { value, .. }
            | Self::Sign { value, .. }
            | Self::AddInterval { value, .. }
            | Self::FloatInList { value, .. }
            | Self::Fallible { value, .. }
            | Self::Not(value) => vec![value],
            Self::And(parts) | Self::Or(parts) | Self::Concat(parts) | Self::ArrowCall { arguments: parts, .. } => {
                parts.iter().collect()
            }
            Self::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
        }
    }
}
