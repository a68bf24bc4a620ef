//! Comparisons of exact numbers with a constant number of any digits: the constant is converted to the type of the
//! other side, so that indexes, zone maps and packed predicates apply, and never the other way round.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};
use functions::cast::oversized_numeric_text;
use functions::type_rules::same_base_type;
use types::numeric::power_of_ten;
use types::text::{NumericPosition, format_numeric, numeric_position};
use types::{SqlResult, SqlType};

use super::compare::TypedExpr;

/// Lowers a comparison of an exact number with a constant number; `None` for all other comparisons.
pub(super) fn lower_with_constant(operator: Operator, left: &TypedExpr, right: &TypedExpr) -> SqlResult<Option<Expr>> {
    if let Some(number) = constant_number(&left.sql_type, right) {
        return build_comparison(operator, left, &number);
    }
    match (reversed(operator), constant_number(&right.sql_type, left)) {
        (Some(operator), Some(number)) => build_comparison(operator, right, &number),
        _ => Ok(None),
    }
}

fn reversed(operator: Operator) -> Option<Operator> {
    match operator {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(operator),
        other => other.swap(),
    }
}

/// Returns, as text, the number that `literal` denotes next to a value of type `beside`.
fn constant_number(beside: &SqlType, literal: &TypedExpr) -> Option<String> {
    if let Some(number) = oversized_numeric_text(&literal.expr) {
        return Some(number.to_owned());
    }
    let Expr::Literal(value, _) = &literal.expr else { return None };
    let mut text = String::new();
    match (beside, value) {
        // An untyped literal next to an integer is an integer.
        (SqlType::Numeric { .. }, _) if literal.sql_type == SqlType::Unknown => {
            return value.try_as_str().flatten().map(str::to_owned);
        }
        (SqlType::Numeric { .. } | SqlType::Int2 | SqlType::Int4 | SqlType::Int8, value) => match value {
            _ if same_base_type(beside, &literal.sql_type) && !matches!(beside, SqlType::Numeric { .. }) => {
                return None;
            }
            ScalarValue::Int16(Some(value)) => format_numeric(i128::from(*value), 0, &mut text),
            ScalarValue::Int32(Some(value)) => format_numeric(i128::from(*value), 0, &mut text),
            ScalarValue::Int64(Some(value)) => format_numeric(i128::from(*value), 0, &mut text),
            ScalarValue::Decimal128(Some(value), _, scale) => {
                format_numeric(*value, u8::try_from(*scale).ok()?, &mut text);
            }
            _ => return None,
        },
        _ => return None,
    }
    Some(text)
}

/// Range of a type, in multiples of 10^-`scale`.
struct NumberRange {
    least: i128,
    greatest: i128,
    scale: u8,
}

impl NumberRange {
    fn from_type(sql_type: &SqlType) -> Option<Self> {
        let (least, greatest, scale) = match sql_type {
            SqlType::Int2 => (i128::from(i16::MIN), i128::from(i16::MAX), 0),
            SqlType::Int4 => (i128::from(i32::MIN), i128::from(i32::MAX), 0),
            SqlType::Int8 => (i128::from(i64::MIN), i128::from(i64::MAX), 0),
            SqlType::Numeric { precision, scale } => {
                let greatest = power_of_ten(*precision) - 1;
                (-greatest, greatest, *scale)
            }
            _ => return None,
        };
        Some(Self { least, greatest, scale })
    }
}

/// Simplified comparison of a column with a number.
#[derive(Debug, PartialEq, Eq)]
enum SimplifiedComparison {
    /// Comparison with this number of the column's type.
    Comparison(Operator, i128),
    /// False for every value, NULL for NULL.
    Never,
    /// True for every value, NULL for NULL.
    Always,
    /// This value, for NULL too.
    Constant(bool),
}

/// Returns the outcome of `operator` with a number at `position` relative to `range`; `None` for other operators.
fn simplify(operator: Operator, position: NumericPosition, range: &NumberRange) -> Option<SimplifiedComparison> {
    use NumericPosition as P;
    use Operator as O;
    use SimplifiedComparison::{Always, Comparison, Constant, Never};
    Some(match (operator, position) {
        (
            O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq | O::IsDistinctFrom | O::IsNotDistinctFrom,
            P::EqualTo(it),
        ) => Comparison(operator, it),
        (O::Eq, _) => Never,
        (O::NotEq, _) => Always,
        (O::IsDistinctFrom, _) => Constant(true),
        (O::IsNotDistinctFrom, _) => Constant(false),
        (O::Lt | O::LtEq, P::Between(floor)) => Comparison(O::LtEq, floor),
        (O::Gt | O::GtEq, P::Between(floor)) => Comparison(O::Gt, floor),
        (O::Lt | O::LtEq, P::Above) => Comparison(O::LtEq, range.greatest),
        (O::Gt | O::GtEq, P::Above) => Comparison(O::Gt, range.greatest),
        (O::Lt | O::LtEq, P::Below) => Comparison(O::Lt, range.least),
        (O::Gt | O::GtEq, P::Below) => Comparison(O::GtEq, range.least),
        _ => return None,
    })
}

fn build_comparison(operator: Operator, side: &TypedExpr, number: &str) -> SqlResult<Option<Expr>> {
    let Some(range) = NumberRange::from_type(&side.sql_type) else { return Ok(None) };
    let position = numeric_position(number, range.scale, range.least, range.greatest)?;
    let expr = || side.expr.clone();
    let unknown = || lit(ScalarValue::Boolean(None));
    Ok(simplify(operator, position, &range).and_then(|outcome| {
        Some(match outcome {
            SimplifiedComparison::Comparison(operator, multiple) => {
                let number = Expr::Literal(scalar(multiple, &side.sql_type)?, None);
                Expr::BinaryExpr(BinaryExpr::new(Box::new(expr()), operator, Box::new(number)))
            }
            SimplifiedComparison::Never => expr().is_null().and(unknown()),
            SimplifiedComparison::Always => expr().is_not_null().or(unknown()),
            SimplifiedComparison::Constant(value) => lit(value),
        })
    }))
}

/// Builds the value of a type from a multiple of 10^-scale.
fn scalar(multiple: i128, sql_type: &SqlType) -> Option<ScalarValue> {
    Some(match sql_type {
        SqlType::Int2 => ScalarValue::Int16(Some(i16::try_from(multiple).ok()?)),
        SqlType::Int4 => ScalarValue::Int32(Some(i32::try_from(multiple).ok()?)),
        SqlType::Int8 => ScalarValue::Int64(Some(i64::try_from(multiple).ok()?)),
        SqlType::Numeric { precision, scale } => {
            ScalarValue::Decimal128(Some(multiple), *precision, i8::try_from(*scale).ok()?)
        }
        _ => return None,
    })
}

/// Returns whether the comparison of `side` with a number is false for every value that is not NULL.
pub(super) fn is_false_or_null(comparison: &Expr, side: &Expr) -> bool {
    matches!(comparison, Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right })
        if matches!(&**left, Expr::IsNull(inner) if **inner == *side)
            && matches!(&**right, Expr::Literal(ScalarValue::Boolean(None), _)))
}

#[cfg(test)]
mod tests;
