//! Digests that identify expressions independently of column numbers and of the order of commutative operands.

use super::{Comparison, Expression};
use crate::{Column, ColumnData, Digest, DigestBuilder};

impl Expression {
    /// Returns a digest of the expression, given digests of the columns' contents; a column's digest may be unknown.
    /// Returns `None` if the result depends on anything without a digest.
    #[must_use]
    pub fn digest(&self, columns: &[Option<Digest>]) -> Option<Digest> {
        let of = |part: &Self| part.digest(columns);
        let sides = |left: &Self, right: &Self| Some([of(left)?, of(right)?]);
        Some(match self {
            Self::Column(at) => columns.get(*at).copied().flatten()?,
            Self::Constant(column) => constant_digest(column)?,
            Self::Arithmetic { operation, left, right, factors, result_range: limits } => {
                DigestBuilder::new("arithmetic")
                    .with(operation)
                    .with(sides(left, right)?)
                    .with(factors)
                    .with(limits)
                    .finish()
            }
            Self::FloatArithmetic { operation, left, right } => {
                DigestBuilder::new("float arithmetic").with(operation).with(sides(left, right)?).finish()
            }
            Self::Divide { division, left, right, limits } => {
                DigestBuilder::new("divide").with(division).with(sides(left, right)?).with(limits).finish()
            }
            Self::FloatDivide { left, right, is_checked } => {
                DigestBuilder::new("float quotient").with(sides(left, right)?).with(is_checked).finish()
            }
            Self::ToFloat { value, scale } => DigestBuilder::new("float").with(of(value)?).with(scale).finish(),
            Self::FloatToInt { value, limits } => DigestBuilder::new("whole").with(of(value)?).with(limits).finish(),
            Self::FloatRound { rounding, value } => {
                DigestBuilder::new("float rounded").with(rounding).with(of(value)?).finish()
            }
            Self::FloatSign { sign, value } => DigestBuilder::new("float signed").with(sign).with(of(value)?).finish(),
            Self::Round { rounding, value, divisor, factor, limits } => {
                let parts = DigestBuilder::new("rounded").with(rounding).with(of(value)?);
                parts.with(divisor).with(factor).with(limits).finish()
            }
            Self::Sign { sign, value, limits } => {
                DigestBuilder::new("signed").with(sign).with(of(value)?).with(limits).finish()
            }
            Self::Compare { comparison, left, right, factors } => {
                let sides = [(of(left)?, factors.0), (of(right)?, factors.1)];
                comparison_digest("compare", *comparison, sides)
            }
            Self::CompareTexts { comparison, left, right } => {
                comparison_digest("compare texts", *comparison, [(of(left)?, 1), (of(right)?, 1)])
            }
            Self::TextCall { call, value } => {
                DigestBuilder::new("text").with(call.function()).with(of(value)?).finish()
            }
            Self::Concat(parts) => DigestBuilder::new("joined").with(digests_of_all(parts, columns)?).finish(),
            Self::DatePart { part, unit, value, is_float } => {
                DigestBuilder::new("date part").with(part).with(unit).with(of(value)?).with(is_float).finish()
            }
            Self::AddInterval { value, unit, interval: by } => {
                DigestBuilder::new("later").with(of(value)?).with(unit).with(by).finish()
            }
            Self::InList { value, list, is_negated } => {
                DigestBuilder::new("in").with(of(value)?).with(list).with(is_negated).finish()
            }
            Self::FloatInList { value, list, is_negated } => {
                let list: Vec<u64> = list.iter().map(|value| value.to_bits()).collect();
                DigestBuilder::new("float in").with(of(value)?).with(list).with(is_negated).finish()
            }
            Self::And(parts) => set_digest("and", parts, columns)?,
            Self::Or(parts) => set_digest("or", parts, columns)?,
            Self::Not(inner) => DigestBuilder::new("not").with(of(inner)?).finish(),
            Self::IsNull { value, is_negated } => {
                DigestBuilder::new("is null").with(of(value)?).with(is_negated).finish()
            }
            Self::Case { branches, otherwise } => {
                let branches = branches.iter().map(|(condition, value)| sides(condition, value));
                let branches = branches.collect::<Option<Vec<_>>>()?;
                let otherwise = match otherwise {
                    Some(otherwise) => Some(of(otherwise)?),
                    None => None,
                };
                DigestBuilder::new("case").with(branches).with(otherwise).finish()
            }
            Self::FinalizeSum { sum, count, limits } => {
                DigestBuilder::new("sum").with(sides(sum, count)?).with(limits).finish()
            }
            Self::Fallible { value, .. } => of(value)?,
            Self::ArrowCall { function, arguments } => function.digest(&digests_of_all(arguments, columns)?)?,
        })
    }

    /// Returns the conditions that the expression is the conjunction of.
    #[must_use]
    pub fn conjuncts(&self) -> Vec<&Self> {
        match self {
            Self::And(parts) => parts.iter().flat_map(Self::conjuncts).collect(),
            Self::Fallible { value, .. } => value.conjuncts(),
            other => vec![other],
        }
    }
}

fn digests_of_all(parts: &[Expression], columns: &[Option<Digest>]) -> Option<Vec<Digest>> {
    parts.iter().map(|part| part.digest(columns)).collect()
}

/// Returns the digest of parts whose order and multiplicity do not matter.
fn set_digest(kind: &str, parts: &[Expression], columns: &[Option<Digest>]) -> Option<Digest> {
    let mut parts = digests_of_all(parts, columns)?;
    parts.sort_unstable();
    parts.dedup();
    Some(DigestBuilder::new(kind).with(parts).finish())
}

/// Returns the digest of a comparison of two sides with their factors; `a < b` and `b > a` have the same digest.
fn comparison_digest(kind: &str, comparison: Comparison, sides: [(Digest, i64); 2]) -> Digest {
    let [left, right] = sides;
    let (comparison, [left, right]) = match comparison {
        Comparison::Greater => (Comparison::Less, [right, left]),
        Comparison::GreaterOrEqual => (Comparison::LessOrEqual, [right, left]),
        Comparison::Equal | Comparison::NotEqual if right < left => (comparison, [right, left]),
        other => (other, [left, right]),
    };
    DigestBuilder::new(kind).with(comparison).with(left).with(right).finish()
}

/// Returns the digest of a constant, or `None` for opaque values.
fn constant_digest(column: &Column) -> Option<Digest> {
    let constant = DigestBuilder::new("constant");
    if !column.is_valid(0) {
        return Some(constant.with("null").with(physical_type_tag(&column.data)?).finish());
    }
    Some(match &column.data {
        ColumnData::Bools(bits) => constant.with("bool").with(bits.get(0)).finish(),
        // Bounds are part of the digest because they decide which loop computes the result and which bounds it has.
        ColumnData::Ints { values, bounds } => constant.with("int").with(values.first()?).with(bounds).finish(),
        ColumnData::WideInts(values) => constant.with("wide").with(values.first()?).finish(),
        ColumnData::Floats(values) => constant.with("float").with(values.first()?.to_bits()).finish(),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            constant.with("text").with(strings.get(*codes.first()?)).finish()
        }
        ColumnData::Texts(texts) => constant.with("text").with(texts.value(0)).finish(),
        ColumnData::Opaque(_) => return None,
    })
}

/// Returns a number for the physical type, or `None` for opaque values.
fn physical_type_tag(data: &ColumnData) -> Option<u8> {
    match data {
        ColumnData::Bools(_) => Some(0),
        ColumnData::Ints { .. } => Some(1),
        ColumnData::WideInts(_) => Some(2),
        ColumnData::Floats(_) => Some(3),
        ColumnData::Dictionary { .. } | ColumnData::Texts(_) => Some(4),
        ColumnData::Opaque(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::expression::{ArithmeticOperation, TextCall, TextFunction};
    use crate::{Bounds, PhysicalType};

    fn column(at: usize) -> Box<Expression> {
        Box::new(Expression::Column(at))
    }

    fn int(value: i64) -> Box<Expression> {
        let data = ColumnData::Ints { values: Arc::new(vec![value]), bounds: Bounds::from_value(value.into()) };
        Box::new(Expression::Constant(Column::new(data)))
    }

    fn compared(comparison: Comparison, left: Box<Expression>, right: Box<Expression>) -> Expression {
        Expression::Compare { comparison, left, right, factors: (1, 1) }
    }

    fn sum(factors: (i64, i64), max: i128) -> Expression {
        let limits = Bounds { min: -max, max };
        Expression::Arithmetic {
            operation: ArithmeticOperation::Add,
            left: column(0),
            right: column(1),
            factors,
            result_range: limits,
        }
    }

    /// Returns the digest over columns whose contents are identified by these names.
    fn digest(expression: &Expression, columns: &[&str]) -> Digest {
        let columns: Vec<_> = columns.iter().map(|name| Some(Digest::from_bytes("column", name.as_bytes()))).collect();
        expression.digest(&columns).expect("every column has a digest")
    }

    #[test]
    fn digest_ignores_column_numbers_and_condition_order() {
        use Comparison::{Equal, Greater, Less};
        let (a, b) = (compared(Less, column(0), int(5)), compared(Equal, column(1), int(7)));
        let (c, d) = (compared(Equal, int(7), column(0)), compared(Greater, int(5), column(1)));
        let one = digest(&Expression::And(vec![a.clone(), b.clone()]), &["x", "y"]);
        assert_eq!(one, digest(&Expression::And(vec![c.clone(), d.clone(), c.clone()]), &["y", "x"]));
        assert_ne!(one, digest(&Expression::And(vec![c.clone(), d.clone()]), &["x", "y"]));
        assert_ne!(one, digest(&Expression::Or(vec![c, d]), &["y", "x"]));
        assert_ne!(digest(&a, &["x"]), digest(&b, &["z", "x"]));
    }

    #[test]
    fn digest_covers_everything_a_value_depends_on() {
        use Comparison::{Less, LessOrEqual};
        let text =
            |function: TextFunction| Expression::TextCall { call: Arc::new(TextCall::new(function)), value: column(0) };
        let trim = |cut: &str, at_end| TextFunction::Trim { characters: cut.to_owned(), at_start: true, at_end };
        let list =
            |values: &[i64], is_negated| Expression::InList { value: column(0), list: values.into(), is_negated };
        let floats =
            |values: &[f64]| Expression::FloatInList { value: column(0), list: values.into(), is_negated: false };
        let null = |form: PhysicalType| Expression::Constant(form.null_column(1));
        let case = |otherwise| Expression::Case { branches: vec![(*column(0), *int(1))], otherwise };
        let all = [
            *column(0),
            *column(1),
            *int(1),
            *int(2),
            null(PhysicalType::Ints),
            null(PhysicalType::Texts),
            compared(Less, column(0), column(1)),
            compared(Less, column(1), column(0)),
            compared(LessOrEqual, column(0), column(1)),
            Expression::Compare { comparison: Less, left: column(0), right: column(1), factors: (1, 10) },
            Expression::Compare { comparison: Less, left: column(0), right: column(1), factors: (10, 1) },
            sum((1, 1), 9),
            sum((1, 1), 99),
            sum((1, 10), 9),
            text(TextFunction::Upper),
            text(TextFunction::Lower),
            text(trim("a", true)),
            text(trim("a", false)),
            text(trim("b", true)),
            list(&[1, 2], false),
            list(&[1, 2], true),
            list(&[1, 2, 3], false),
            floats(&[0.0]),
            floats(&[-0.0]),
            Expression::Not(column(0)),
            Expression::IsNull { value: column(0), is_negated: true },
            Expression::IsNull { value: column(0), is_negated: false },
            Expression::Concat(vec![*column(0), *column(1)]),
            Expression::Concat(vec![*column(1), *column(0)]),
            case(None),
            case(Some(int(1))),
            case(Some(int(2))),
        ];
        let mut digests: Vec<Digest> = all.iter().map(|expression| digest(expression, &["x", "y"])).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), all.len());
    }

    #[test]
    fn unknown_columns_have_no_digest() {
        let known = Some(Digest::from_bytes("column", b"x"));
        let expression = compared(Comparison::Less, column(0), column(1));
        assert!(expression.digest(&[known, known]).is_some());
        assert!(expression.digest(&[known, None]).is_none() && expression.digest(&[known]).is_none());
    }
}
