//! Random expressions of a type.

use super::query::{Generator, Scope};
use super::tables::Kind;

impl Generator<'_> {
    /// Returns an expression over the scope's columns, nested up to `depth`.
    pub(super) fn value(&self, scope: &Scope, kind: Kind, depth: u32) -> String {
        let fields: Vec<&str> = scope.of(kind).map(|field| field.sql.as_str()).collect();
        if depth == 0 || self.chance.once_in(2) {
            return match fields.is_empty() || self.chance.once_in(8) {
                true if self.chance.once_in(8) => format!("NULL::{}", kind.sql()),
                true => self.constant(kind),
                false => (*self.chance.pick(&fields)).to_owned(),
            };
        }
        let one = || self.value(scope, kind, depth - 1);
        match self.chance.below(8) {
            0 => {
                let condition = self.condition(scope, depth - 1);
                format!("CASE WHEN {condition} THEN {} ELSE {} END", one(), one())
            }
            1 => format!("CASE WHEN {} THEN {} END", self.condition(scope, depth - 1), one()),
            2 => format!("coalesce({}, {})", one(), one()),
            3 => format!("nullif({}, {})", one(), one()),
            _ => self.computed(scope, kind, depth - 1),
        }
    }

    pub(super) fn constant(&self, kind: Kind) -> String {
        kind.value(self.chance.below(40))
    }

    /// Returns a result of operators or functions of the type.
    fn computed(&self, scope: &Scope, kind: Kind, depth: u32) -> String {
        let of = |kind| self.value(scope, kind, depth);
        let choice = self.chance.below(5);
        match (kind, choice) {
            (Kind::Int, 0) => format!("length({})", of(Kind::Text)),
            (Kind::Int, 1) => format!("extract(year FROM {})::integer", of(Kind::Date)),
            (Kind::Int, 2) if self.chance.once_in(2) => format!("({} % 7)", of(Kind::Int)),
            (Kind::Int, 2) => format!("({} / nullif({}, 0))", of(Kind::Int), of(Kind::Int)),
            (Kind::Int, 3) if self.chance.once_in(2) => {
                let (part, of_kind) =
                    self.chance.pick(&[("hour", Kind::Moment), ("day", Kind::Moment), ("day", Kind::Span)]);
                format!("extract({part} FROM {})::integer", of(*of_kind))
            }
            (Kind::Int, _) => format!("({} {} {})", of(Kind::Int), self.chance.pick(&["+", "-"]), of(Kind::Int)),
            (Kind::Long, 0) => format!("{}::bigint", of(Kind::Int)),
            (Kind::Long, 1) => format!("abs({})", of(Kind::Long)),
            (Kind::Long, 2) => format!("({}::bigint * {})", of(Kind::Int), of(Kind::Int)),
            (Kind::Long, _) => format!("({} {} {})", of(Kind::Long), self.chance.pick(&["+", "-"]), of(Kind::Long)),
            (Kind::Exact, 0) if self.chance.once_in(2) => format!("round({}, 1)", of(Kind::Exact)),
            // Quotients differ in their number of digits.
            (Kind::Exact, 0) => {
                let (left, right) = (self.value(scope, Kind::Exact, 0), self.value(scope, Kind::Exact, 0));
                format!("round({left} / nullif({right}, 0), 3)::numeric(20,3)")
            }
            (Kind::Exact, 1) => format!("({} * {})", of(Kind::Exact), of(Kind::Exact)),
            (Kind::Exact, 2) => format!("({} + {})", of(Kind::Exact), of(Kind::Int)),
            (Kind::Exact, _) => format!("({} {} {})", of(Kind::Exact), self.chance.pick(&["+", "-"]), of(Kind::Exact)),
            (Kind::Float, 0) => format!("{}::float8", of(Kind::Int)),
            (Kind::Float, 1) => {
                let quotient = format!("{} / nullif({}, 0)", of(Kind::Float), of(Kind::Float));
                format!("{}({quotient})", self.chance.pick(&["floor", "ceil", "round", "trunc"]))
            }
            (Kind::Float, _) => {
                format!("({} {} {})", of(Kind::Float), self.chance.pick(&["+", "-", "*"]), of(Kind::Float))
            }
            (Kind::Text, 0) => format!("upper({})", of(Kind::Text)),
            (Kind::Text, 1) => format!("substring({} FROM 1 FOR {})", of(Kind::Text), self.chance.below(4)),
            (Kind::Text, 2) => format!("({})::text", of(Kind::Int)),
            (Kind::Text, _) => format!("({} || {})", of(Kind::Text), of(Kind::Text)),
            (Kind::Date, 0) => format!("({})::date", of(Kind::Moment)),
            (Kind::Date, _) => format!("({} + {})", of(Kind::Date), of(Kind::Int)),
            (Kind::Moment, 0) => format!("({} + interval '1 month 2 days 03:30:00')", of(Kind::Date)),
            (Kind::Moment, 1) => {
                format!("date_trunc('{}', {})", self.chance.pick(&["hour", "day", "month"]), of(Kind::Moment))
            }
            (Kind::Moment, 2) => format!("({} - interval '2 months 1 hour')", of(Kind::Moment)),
            (Kind::Moment, _) => {
                format!("({} {} {})", of(Kind::Moment), self.chance.pick(&["+", "-"]), of(Kind::Span))
            }
            (Kind::Span, 0) => format!("({} - {})", of(Kind::Moment), of(Kind::Moment)),
            (Kind::Span, _) => {
                format!("justify_hours({} {} {})", of(Kind::Span), self.chance.pick(&["+", "-"]), of(Kind::Span))
            }
            (Kind::Wide, 0) => format!("({})::numeric(30,4)", of(*self.chance.pick(&[Kind::Long, Kind::Exact]))),
            (Kind::Wide, 1) => format!("abs({})", of(Kind::Wide)),
            (Kind::Wide, _) => format!("({} {} {})", of(Kind::Wide), self.chance.pick(&["+", "-"]), of(Kind::Wide)),
            (Kind::Bool, _) => format!("({})", self.condition(scope, depth)),
            (Kind::Real, 0) => format!("{}::real", of(Kind::Int)),
            (Kind::Real, _) => format!("({} {} {})", of(Kind::Real), self.chance.pick(&["+", "-"]), of(Kind::Real)),
            (Kind::Uuid | Kind::Bytes, _) => of(kind),
        }
    }
}
