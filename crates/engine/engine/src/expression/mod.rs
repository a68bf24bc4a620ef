//! Scalar expressions over the columns of a batch.
//!
//! - `arithmetic`, `division`, `rounding`, `sign`, `float`: numbers
//! - `compare`, `logic`, `case`: comparisons, three-valued logic and CASE
//! - `text`, `text_pair`, `date`: strings, dates and timestamps
//! - `foreign`, `fallback`, `memory`: functions over Arrow arrays, the slow path of fast loops, and results cached
//!   between batches
//! - `computed`: the value of an expression, one per row or one for all rows
//! - `digest`: digests that identify expressions

mod arithmetic;
mod case;
mod compare;
mod computed;
mod date;
mod digest;
mod division;
mod fallback;
mod float;
mod foreign;
mod logic;
mod memory;
mod rounding;
mod sign;
mod text;
mod text_pair;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use arithmetic::Operation;
pub use blocks::{Comparison, Pattern, TextCondition};
pub(crate) use compare::float_order;
pub(crate) use computed::Computed;
pub use date::TimeUnit;
pub use division::Division;
pub use fallback::Fallback;
pub use foreign::Foreign;
pub use memory::{Calls, Memory, function_id};
pub use rounding::Rounding;
pub use sign::Sign;
pub use text::{TextCall, TextFunction};
use types::{DatePart, Interval};

use crate::portions::{ErrorGranularity, in_portions};
use crate::vector::append;
use crate::{Batch, Bits, Bounds, Column, Data, Error, Result};

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
        operation: Operation,
        left: Box<Expression>,
        right: Box<Expression>,
        /// Powers of ten that the sides are multiplied by first, so that both have the same scale.
        factors: (i64, i64),
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Addition, subtraction or multiplication of `float8`.
    FloatArithmetic {
        operation: Operation,
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
    FloatQuotient {
        left: Box<Expression>,
        right: Box<Expression>,
        /// Whether division by zero, overflow and underflow are errors. They are not in an average, as in PostgreSQL.
        is_checked: bool,
    },
    /// Conversion of an exact number with `scale` digits after the decimal point to `float8`.
    Float {
        value: Box<Expression>,
        scale: u8,
    },
    /// Conversion of a `float8` to the nearest integer.
    Whole {
        value: Box<Expression>,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Rounding of a `float8` to a whole number.
    FloatRounded {
        rounding: Rounding,
        value: Box<Expression>,
    },
    /// Negation or absolute value of a `float8`.
    FloatSigned {
        sign: Sign,
        value: Box<Expression>,
    },
    /// Rounding of an exact number: it is divided by `divisor`, rounded, and multiplied by `factor`.
    Rounded {
        rounding: Rounding,
        value: Box<Expression>,
        divisor: i128,
        factor: i128,
        /// Range of the result's type.
        limits: Bounds,
    },
    /// Negation or absolute value of an exact number.
    Signed {
        sign: Sign,
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
    Text {
        call: Arc<TextCall>,
        value: Box<Expression>,
    },
    /// Concatenation of strings.
    Joined(Vec<Expression>),
    /// Field of a date or of a timestamp without time zone (EXTRACT).
    DatePart {
        part: DatePart,
        unit: TimeUnit,
        value: Box<Expression>,
        /// Whether the result is a `float8`.
        is_float: bool,
    },
    /// Sum of an interval and a date or timestamp without time zone.
    Later {
        value: Box<Expression>,
        unit: TimeUnit,
        by: Interval,
    },
    /// Whether an exact number is in a list of values, which is in ascending order.
    In {
        value: Box<Expression>,
        list: Arc<[i64]>,
        is_negated: bool,
    },
    /// Whether a `float8` is in a list.
    FloatIn {
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
    Sum {
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
    Foreign {
        function: Arc<dyn Foreign>,
        arguments: Vec<Expression>,
    },
}

impl Expression {
    /// Computes the value of each row.
    ///
    /// # Errors
    /// Returns an error if a value cannot be computed, or if a column's physical type is not the one that the
    /// expression was compiled for.
    pub fn evaluate(&self, batch: &Batch, memory: &mut Memory) -> Result<Column> {
        self.compute(batch, memory)?.into_column(batch.rows)
    }

    /// Returns the rows for which the expression is true.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::evaluate`].
    pub fn is_true(&self, batch: &Batch, memory: &mut Memory) -> Result<Bits> {
        logic::truth(self.compute(batch, memory)?, batch.rows)
    }

    /// Works like [`Expression::is_true`], but evaluates few rows at a time if the values are large.
    ///
    /// # Errors
    /// Returns the errors of [`Expression::evaluate`].
    pub fn is_true_in_portions(&self, batch: &Batch, memory: &mut Memory) -> Result<Bits> {
        let mut portions = Vec::new();
        in_portions(
            batch.clone(),
            ErrorGranularity::Batch,
            |portion| self.is_true(&portion, memory),
            |bits| {
                portions.push(bits);
                Ok(())
            },
        )?;
        match portions.len() {
            1 => portions.pop().ok_or(Error::Form("a single portion is missing")),
            _ => Ok(append(portions.iter().map(|bits| (bits.rows(), Some(bits))), batch.rows)),
        }
    }

    /// Computes the expression, as one value for all rows if it is constant.
    pub(crate) fn compute(&self, batch: &Batch, memory: &mut Memory) -> Result<Computed> {
        match self {
            Self::Column(at) => Ok(Computed::rows(batch.columns[*at].clone())),
            Self::Constant(column) => Ok(Computed { column: column.clone(), is_scalar: true }),
            Self::Arithmetic { operation, left, right, factors, limits } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                arithmetic::integers(*operation, &left, &right, *factors, *limits, batch.rows)
            }
            Self::FloatArithmetic { operation, left, right } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                arithmetic::floats(*operation, &left, &right, batch.rows)
            }
            Self::Divide { division, left, right, limits } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                division::divided(*division, &left, &right, *limits, batch.rows)
            }
            Self::FloatQuotient { left, right, is_checked } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                division::floats(&left, &right, *is_checked, batch.rows)
            }
            Self::Float { value, scale } => float::of_exact(value.compute(batch, memory)?, *scale),
            Self::Whole { value, limits } => float::whole(value.compute(batch, memory)?, *limits),
            Self::FloatRounded { rounding, value } => float::rounded(value.compute(batch, memory)?, *rounding),
            Self::FloatSigned { sign, value } => float::signed(value.compute(batch, memory)?, *sign),
            Self::Rounded { rounding, value, divisor, factor, limits } => {
                rounding::rounded(*rounding, value.compute(batch, memory)?, (*divisor, *factor), *limits)
            }
            Self::Signed { sign, value, limits } => sign::signed(value.compute(batch, memory)?, *sign, *limits),
            Self::Later { value, unit, by } => date::later(value.compute(batch, memory)?, *unit, *by),
            Self::CompareTexts { comparison, left, right } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                text_pair::compare(*comparison, &left, &right, batch.rows)
            }
            Self::Text { call, value } => call.compute(value.compute(batch, memory)?, memory),
            Self::Joined(parts) => {
                let parts = parts.iter().map(|part| part.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
                text_pair::joined(&parts, batch.rows)
            }
            Self::DatePart { part, unit, value, is_float } => {
                date::part(value.compute(batch, memory)?, *part, *unit, *is_float)
            }
            Self::Compare { comparison, left, right, factors } => {
                let (left, right) = (left.compute(batch, memory)?, right.compute(batch, memory)?);
                compare::numbers(*comparison, &left, &right, *factors, batch.rows)
            }
            Self::In { value, list, is_negated } => {
                compare::among(&value.compute(batch, memory)?, list, *is_negated, batch.rows)
            }
            Self::FloatIn { value, list, is_negated } => {
                compare::among_floats(&value.compute(batch, memory)?, list, *is_negated, batch.rows)
            }
            Self::And(parts) => logic::all(parts, batch, memory),
            Self::Or(parts) => logic::any(parts, batch, memory),
            Self::Not(inner) => logic::not(inner.compute(batch, memory)?),
            Self::IsNull { value, is_negated } => {
                let value = value.compute(batch, memory)?;
                let valid =
                    value.validity(batch.rows).map_or_else(|| Bits::all(batch.rows, true), |bits| (*bits).clone());
                let bits = if *is_negated { valid } else { valid.not() };
                Ok(Computed::rows(Column::new(Data::Bools(Arc::new(bits)))))
            }
            Self::Case { branches, otherwise } => case::choose(branches, otherwise.as_deref(), batch, memory),
            Self::Sum { sum, count, limits } => {
                logic::some(sum.compute(batch, memory)?, &count.compute(batch, memory)?, *limits)
            }
            Self::Fallible { value, fallback } => match value.compute(batch, memory) {
                Err(error) if error.is_about_values() => fallback.expression()?.compute(batch, memory),
                computed => computed,
            },
            Self::Foreign { function, arguments } => foreign::call(function, arguments, batch, memory),
        }
    }

    /// Adds the positions of the columns that the expression reads.
    pub fn columns(&self, positions: &mut Vec<usize>) {
        match self {
            Self::Column(at) => positions.push(*at),
            other => other.children().into_iter().for_each(|child| child.columns(positions)),
        }
    }

    /// Returns whether equal inputs always give equal results.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        !matches!(self, Self::Foreign { function, .. } if !function.is_immutable())
            && self.children().into_iter().all(Self::is_immutable)
    }

    /// Returns whether the expression has a value for every row, whatever the values of its columns are.
    #[must_use]
    pub fn never_fails(&self) -> bool {
        let is_safe = match self {
            Self::Column(_)
            | Self::Constant(_)
            | Self::CompareTexts { .. }
            | Self::Text { .. }
            | Self::In { .. }
            | Self::And(_)
            | Self::Or(_)
            | Self::Not(_)
            | Self::IsNull { .. }
            | Self::Case { .. }
            | Self::Float { .. }
            | Self::FloatRounded { .. }
            | Self::FloatSigned { .. }
            | Self::FloatIn { .. } => true,
            // Scaling by a factor may overflow 128 bits.
            Self::Compare { factors, .. } => *factors == (1, 1),
            Self::Arithmetic { .. }
            | Self::FloatArithmetic { .. }
            | Self::FloatQuotient { .. }
            | Self::Divide { .. }
            | Self::Whole { .. }
            | Self::Rounded { .. }
            | Self::Signed { .. }
            | Self::Later { .. }
            | Self::Joined(_)
            | Self::DatePart { .. }
            | Self::Sum { .. }
            | Self::Fallible { .. }
            | Self::Foreign { .. } => false,
        };
        is_safe && self.children().into_iter().all(Self::never_fails)
    }

    /// Adds the Arrow functions that the expression calls.
    pub fn foreign<'a>(&'a self, functions: &mut Vec<&'a dyn Foreign>) {
        if let Self::Foreign { function, .. } = self {
            functions.push(function.as_ref());
        }
        self.children().into_iter().for_each(|child| child.foreign(functions));
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
            | Self::FloatQuotient { left, right, .. }
            | Self::Sum { sum: left, count: right, .. } => vec![left, right],
            Self::In { value, .. }
            | Self::IsNull { value, .. }
            | Self::Text { value, .. }
            | Self::DatePart { value, .. }
            | Self::Float { value, .. }
            | Self::Whole { value, .. }
            | Self::FloatRounded { value, .. }
            | Self::FloatSigned { value, .. }
            | Self::Rounded { value, .. }
            | Self::Signed { value, .. }
            | Self::Later { value, .. }
            | Self::FloatIn { value, .. }
            | Self::Fallible { value, .. }
            | Self::Not(value) => vec![value],
            Self::And(parts) | Self::Or(parts) | Self::Joined(parts) | Self::Foreign { arguments: parts, .. } => {
                parts.iter().collect()
            }
            Self::Case { branches, otherwise } => {
                let branches = branches.iter().flat_map(|(condition, value)| [condition, value]);
                branches.chain(otherwise.as_deref()).collect()
            }
        }
    }
}
