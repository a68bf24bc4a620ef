//! Digests that identify expressions independently of column numbers and of the order of commutative operands.

use super::{Comparison, Expression};
use crate::{Column, Data, Digest, Digesting};

impl Expression {
    /// Returns a digest of the expression, given digests of the columns' contents; a column's digest may be unknown.
    /// Returns `None` if the result depends on anything without a digest.
    #[must_use]
    pub fn digest(&self, columns: &[Option<Digest>]) -> Option<Digest> {
        let of = |part: &Self| part.digest(columns);
        let sides = |left: &Self, right: &Self| Some([of(left)?, of(right)?]);
        Some(match self {
            Self::Column(at) => columns.get(*at).copied().flatten()?,
            Self::Constant(column) => constant(column)?,
            Self::Arithmetic { operation, left, right, factors, limits } => {
                Digesting::new("arithmetic").with(operation).with(sides(left, right)?).with(factors).with(limits).end()
            }
            Self::FloatArithmetic { operation, left, right } => {
                Digesting::new("float arithmetic").with(operation).with(sides(left, right)?).end()
            }
            Self::Divide { division, left, right, limits } => {
                Digesting::new("divide").with(division).with(sides(left, right)?).with(limits).end()
            }
            Self::FloatQuotient { left, right, is_checked } => {
                Digesting::new("float quotient").with(sides(left, right)?).with(is_checked).end()
            }
            Self::Float { value, scale } => Digesting::new("float").with(of(value)?).with(scale).end(),
            Self::Whole { value, limits } => Digesting::new("whole").with(of(value)?).with(limits).end(),
            Self::FloatRounded { rounding, value } => {
                Digesting::new("float rounded").with(rounding).with(of(value)?).end()
            }
            Self::FloatSigned { sign, value } => Digesting::new("float signed").with(sign).with(of(value)?).end(),
            Self::Rounded { rounding, value, divisor, factor, limits } => {
                let parts = Digesting::new("rounded").with(rounding).with(of(value)?);
                parts.with(divisor).with(factor).with(limits).end()
            }
            Self::Signed { sign, value, limits } => {
                Digesting::new("signed").with(sign).with(of(value)?).with(limits).end()
            }
            Self::Compare { comparison, left, right, factors } => {
                let sides = [(of(left)?, factors.0), (of(right)?, factors.1)];
                compared("compare", *comparison, sides)
            }
            Self::CompareTexts { comparison, left, right } => {
                compared("compare texts", *comparison, [(of(left)?, 1), (of(right)?, 1)])
            }
            Self::Text { call, value } => Digesting::new("text").with(call.function()).with(of(value)?).end(),
            Self::Joined(parts) => Digesting::new("joined").with(all(parts, columns)?).end(),
            Self::DatePart { part, unit, value, is_float } => {
                Digesting::new("date part").with(part).with(unit).with(of(value)?).with(is_float).end()
            }
            Self::Later { value, unit, by } => Digesting::new("later").with(of(value)?).with(unit).with(by).end(),
            Self::In { value, list, is_negated } => {
                Digesting::new("in").with(of(value)?).with(list).with(is_negated).end()
            }
            Self::FloatIn { value, list, is_negated } => {
                let list: Vec<u64> = list.iter().map(|value| value.to_bits()).collect();
                Digesting::new("float in").with(of(value)?).with(list).with(is_negated).end()
            }
            Self::And(parts) => set("and", parts, columns)?,
            Self::Or(parts) => set("or", parts, columns)?,
            Self::Not(inner) => Digesting::new("not").with(of(inner)?).end(),
            Self::IsNull { value, is_negated } => Digesting::new("is null").with(of(value)?).with(is_negated).end(),
            Self::Case { branches, otherwise } => {
                let branches = branches.iter().map(|(condition, value)| sides(condition, value));
                let branches = branches.collect::<Option<Vec<_>>>()?;
                let otherwise = match otherwise {
                    Some(otherwise) => Some(of(otherwise)?),
                    None => None,
                };
                Digesting::new("case").with(branches).with(otherwise).end()
            }
            Self::Sum { sum, count, limits } => Digesting::new("sum").with(sides(sum, count)?).with(limits).end(),
            Self::Fallible { value, .. } => of(value)?,
            Self::Foreign { function, arguments } => function.digest(&all(arguments, columns)?)?,
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

fn all(parts: &[Expression], columns: &[Option<Digest>]) -> Option<Vec<Digest>> {
    parts.iter().map(|part| part.digest(columns)).collect()
}

/// Returns the digest of parts whose order and multiplicity do not matter.
fn set(kind: &str, parts: &[Expression], columns: &[Option<Digest>]) -> Option<Digest> {
    let mut parts = all(parts, columns)?;
    parts.sort_unstable();
    parts.dedup();
    Some(Digesting::new(kind).with(parts).end())
}

/// Returns the digest of a comparison of two sides with their factors; `a < b` and `b > a` have the same digest.
fn compared(kind: &str, comparison: Comparison, sides: [(Digest, i64); 2]) -> Digest {
    let [left, right] = sides;
    let (comparison, [left, right]) = match comparison {
        Comparison::Greater => (Comparison::Less, [right, left]),
        Comparison::GreaterOrEqual => (Comparison::LessOrEqual, [right, left]),
        Comparison::Equal | Comparison::NotEqual if right < left => (comparison, [right, left]),
        other => (other, [left, right]),
    };
    Digesting::new(kind).with(comparison).with(left).with(right).end()
}

/// Returns the digest of a constant, or `None` for opaque values.
fn constant(column: &Column) -> Option<Digest> {
    let constant = Digesting::new("constant");
    if !column.is_valid(0) {
        return Some(constant.with("null").with(form(&column.data)?).end());
    }
    Some(match &column.data {
        Data::Bools(bits) => constant.with("bool").with(bits.get(0)).end(),
        // Bounds are part of the digest because they decide which loop computes the result and which bounds it has.
        Data::Ints { values, bounds } => constant.with("int").with(values.first()?).with(bounds).end(),
        Data::Wide(values) => constant.with("wide").with(values.first()?).end(),
        Data::Floats(values) => constant.with("float").with(values.first()?.to_bits()).end(),
        Data::Codes { codes, strings } => constant.with("text").with(strings.get(*codes.first()?)).end(),
        Data::Texts(texts) => constant.with("text").with(texts.value(0)).end(),
        Data::Opaque(_) => return None,
    })
}

/// Returns a number for the physical type, or `None` for opaque values.
fn form(data: &Data) -> Option<u8> {
    match data {
        Data::Bools(_) => Some(0),
        Data::Ints { .. } => Some(1),
        Data::Wide(_) => Some(2),
        Data::Floats(_) => Some(3),
        Data::Codes { .. } | Data::Texts(_) => Some(4),
        Data::Opaque(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::expression::{Operation, TextCall, TextFunction};
    use crate::{Bounds, Form};

    fn column(at: usize) -> Box<Expression> {
        Box::new(Expression::Column(at))
    }

    fn int(value: i64) -> Box<Expression> {
        let data = Data::Ints { values: Arc::new(vec![value]), bounds: Bounds::of(value.into()) };
        Box::new(Expression::Constant(Column::new(data)))
    }

    fn compared(comparison: Comparison, left: Box<Expression>, right: Box<Expression>) -> Expression {
        Expression::Compare { comparison, left, right, factors: (1, 1) }
    }

    fn sum(factors: (i64, i64), max: i128) -> Expression {
        let limits = Bounds { min: -max, max };
        Expression::Arithmetic { operation: Operation::Add, left: column(0), right: column(1), factors, limits }
    }

    /// Returns the digest over columns whose contents are identified by these names.
    fn digest(expression: &Expression, columns: &[&str]) -> Digest {
        let columns: Vec<_> = columns.iter().map(|name| Some(Digest::of_bytes("column", name.as_bytes()))).collect();
        expression.digest(&columns).expect("every column has a digest")
    }

    #[test]
    fn numbers_of_columns_and_the_order_of_conditions_say_nothing() {
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
    fn whatever_a_value_depends_on_makes_a_difference() {
        use Comparison::{Less, LessOrEqual};
        let text =
            |function: TextFunction| Expression::Text { call: Arc::new(TextCall::new(function)), value: column(0) };
        let trim = |cut: &str, at_end| TextFunction::Trim { cut: cut.to_owned(), at_start: true, at_end };
        let list = |values: &[i64], is_negated| Expression::In { value: column(0), list: values.into(), is_negated };
        let floats = |values: &[f64]| Expression::FloatIn { value: column(0), list: values.into(), is_negated: false };
        let null = |form: Form| Expression::Constant(form.nulls(1));
        let case = |otherwise| Expression::Case { branches: vec![(*column(0), *int(1))], otherwise };
        let all = [
            *column(0),
            *column(1),
            *int(1),
            *int(2),
            null(Form::Ints),
            null(Form::Texts),
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
            Expression::Joined(vec![*column(0), *column(1)]),
            Expression::Joined(vec![*column(1), *column(0)]),
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
    fn what_is_not_known_has_no_digest() {
        let known = Some(Digest::of_bytes("column", b"x"));
        let expression = compared(Comparison::Less, column(0), column(1));
        assert!(expression.digest(&[known, known]).is_some());
        assert!(expression.digest(&[known, None]).is_none() && expression.digest(&[known]).is_none());
    }
}
