//! Random conditions: comparisons, patterns, lists, and subqueries of any correlation.

use super::query::{Generator, Scope};
use super::tables::ValueType;

/// Maximum number of row pairs for a correlated subquery that runs once per row.
pub(super) const PAIRS_MAX: u64 = 500_000;

const PATTERNS: [&str; 14] = [
    "'%'",
    "'a%'",
    "'%e%'",
    "'%e%s%'",
    "'s%l'",
    "'%s'",
    "'_b'",
    "'%n_c%'",
    "'50\\%'",
    "'%\\%%'",
    "'Forest%'",
    "''",
    "'%1'",
    "'g%n%2'",
];

impl Generator<'_> {
    pub(super) fn condition(&self, scope: &Scope, depth: u32) -> String {
        let below = depth.saturating_sub(1);
        match self.chance.below(12) {
            0 if depth != 0 => format!("({} AND {})", self.condition(scope, below), self.condition(scope, below)),
            1 if depth != 0 => format!("({} OR {})", self.condition(scope, below), self.condition(scope, below)),
            2 if depth != 0 => format!("NOT ({})", self.condition(scope, below)),
            3 => {
                let kind = *self.chance.pick(&ValueType::ALL);
                format!("{} IS {}NULL", self.value(scope, kind, below.min(1)), self.not())
            }
            4 => {
                let (value, like) =
                    (self.value(scope, ValueType::Text, below.min(1)), self.chance.pick(&["LIKE", "LIKE", "ILIKE"]));
                format!("{value} {}{like} {}", self.not(), self.pattern())
            }
            5 => {
                let kind = *self.chance.pick(&[
                    ValueType::Int,
                    ValueType::Long,
                    ValueType::Text,
                    ValueType::Date,
                    ValueType::Numeric,
                    ValueType::Float,
                    ValueType::Timestamp,
                    ValueType::WideNumeric,
                ]);
                let list = (0..1 + self.chance.below(6)).map(|_| self.constant(kind)).collect::<Vec<_>>();
                format!("{} {}IN ({})", self.value(scope, kind, below.min(1)), self.not(), list.join(", "))
            }
            6 => {
                let kind = *self.chance.pick(&[
                    ValueType::Int,
                    ValueType::Date,
                    ValueType::Numeric,
                    ValueType::Float,
                    ValueType::Text,
                    ValueType::Timestamp,
                    ValueType::Interval,
                ]);
                let value = self.value(scope, kind, below.min(1));
                format!("{value} {}BETWEEN {} AND {}", self.not(), self.constant(kind), self.constant(kind))
            }
            7 if depth != 0 => self.exists(scope),
            8 if depth != 0 => self.in_subquery(scope),
            9 if depth != 0 => self.scalar_comparison(scope),
            _ => {
                let kind = *self.chance.pick(&ValueType::ALL);
                let sign = self.chance.pick(&["=", "<>", "<", "<=", ">", ">="]);
                let other = if self.chance.one_in(3) { self.value(scope, kind, below) } else { self.constant(kind) };
                format!("{} {sign} {other}", self.value(scope, kind, below))
            }
        }
    }

    fn not(&self) -> &'static str {
        if self.chance.one_in(3) { "NOT " } else { "" }
    }

    fn pattern(&self) -> &'static str {
        self.chance.pick::<&str>(&PATTERNS)
    }

    /// Returns a correlated or uncorrelated EXISTS.
    fn exists(&self, scope: &Scope) -> String {
        let inner = self.table();
        let Some((outer, other)) = self.keys(scope, &inner) else { return "true".to_owned() };
        let more = if self.chance.one_in(2) { format!(" AND {}", self.condition(&inner, 0)) } else { String::new() };
        format!("{}EXISTS (SELECT 1 FROM {} WHERE {other} = {outer}{more})", self.not(), inner.from)
    }

    /// Returns an IN subquery over a table's column, with or without NULLs.
    fn in_subquery(&self, scope: &Scope) -> String {
        let inner = self.table();
        let Some((outer, other)) = self.keys(scope, &inner) else { return "true".to_owned() };
        let filter =
            if self.chance.one_in(2) { format!(" WHERE {}", self.condition(&inner, 0)) } else { String::new() };
        format!("{outer} {}IN (SELECT {other} FROM {}{filter})", self.not(), inner.from)
    }

    /// Returns a comparison with a scalar subquery, correlated or not.
    fn scalar_comparison(&self, scope: &Scope) -> String {
        let inner = self.table();
        let kind =
            *self.chance.pick(&[ValueType::Int, ValueType::Long, ValueType::Numeric, ValueType::Date, ValueType::Text]);
        let Some(field) = inner.fields_of(kind).next() else { return "true".to_owned() };
        let function = self.chance.pick(&["min", "max"]);
        let filter = match self.keys(scope, &inner) {
            Some((outer, other)) if scope.rows * inner.rows < PAIRS_MAX && self.chance.one_in(2) => {
                format!(" WHERE {other} = {outer}")
            }
            _ => String::new(),
        };
        let sign = self.chance.pick(&["=", "<", ">="]);
        format!("{} {sign} (SELECT {function}({}) FROM {}{filter})", self.value(scope, kind, 1), field.sql, inner.from)
    }
}
