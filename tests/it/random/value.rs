//! Random expressions of a type.

use super::query::{Generator, Scope};
use super::tables::ValueType;

impl Generator<'_> {
    /// Returns an expression over the scope's columns, nested up to `depth`.
    pub(super) fn value(&self, scope: &Scope, kind: ValueType, depth: u32) -> String {
        let fields: Vec<&str> = scope.fields_of(kind).map(|field| field.sql.as_str()).collect();
        if depth == 0 || self.chance.one_in(2) {
            return match fields.is_empty() || self.chance.one_in(8) {
                true if self.chance.one_in(8) => format!("NULL::{}", kind.sql()),
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

    pub(super) fn constant(&self, kind: ValueType) -> String {
        kind.value(self.chance.below(40))
    }

    /// Returns a result of operators or functions of the type.
    fn computed(&self, scope: &Scope, kind: ValueType, depth: u32) -> String {
        let of = |kind| self.value(scope, kind, depth);
        let choice = self.chance.below(5);
        match (kind, choice) {
            (ValueType::Int, 0) => format!("length({})", of(ValueType::Text)),
            (ValueType::Int, 1) => format!("extract(year FROM {})::integer", of(ValueType::Date)),
            (ValueType::Int, 2) if self.chance.one_in(2) => format!("({} % 7)", of(ValueType::Int)),
            (ValueType::Int, 2) => format!("({} / nullif({}, 0))", of(ValueType::Int), of(ValueType::Int)),
            (ValueType::Int, 3) if self.chance.one_in(2) => {
                let (part, of_kind) = self.chance.pick(&[
                    ("hour", ValueType::Timestamp),
                    ("day", ValueType::Timestamp),
                    ("day", ValueType::Interval),
                ]);
                format!("extract({part} FROM {})::integer", of(*of_kind))
            }
            (ValueType::Int, _) => {
                format!("({} {} {})", of(ValueType::Int), self.chance.pick(&["+", "-"]), of(ValueType::Int))
            }
            (ValueType::Long, 0) => format!("{}::bigint", of(ValueType::Int)),
            (ValueType::Long, 1) => format!("abs({})", of(ValueType::Long)),
            (ValueType::Long, 2) => format!("({}::bigint * {})", of(ValueType::Int), of(ValueType::Int)),
            (ValueType::Long, _) => {
                format!("({} {} {})", of(ValueType::Long), self.chance.pick(&["+", "-"]), of(ValueType::Long))
            }
            (ValueType::Numeric, 0) if self.chance.one_in(2) => format!("round({}, 1)", of(ValueType::Numeric)),
            // Quotients differ in their number of digits.
            (ValueType::Numeric, 0) => {
                let (left, right) =
                    (self.value(scope, ValueType::Numeric, 0), self.value(scope, ValueType::Numeric, 0));
                format!("round({left} / nullif({right}, 0), 3)::numeric(20,3)")
            }
            (ValueType::Numeric, 1) => format!("({} * {})", of(ValueType::Numeric), of(ValueType::Numeric)),
            (ValueType::Numeric, 2) => format!("({} + {})", of(ValueType::Numeric), of(ValueType::Int)),
            (ValueType::Numeric, _) => {
                format!("({} {} {})", of(ValueType::Numeric), self.chance.pick(&["+", "-"]), of(ValueType::Numeric))
            }
            (ValueType::Float, 0) => format!("{}::float8", of(ValueType::Int)),
            (ValueType::Float, 1) => {
                let quotient = format!("{} / nullif({}, 0)", of(ValueType::Float), of(ValueType::Float));
                format!("{}({quotient})", self.chance.pick(&["floor", "ceil", "round", "trunc"]))
            }
            (ValueType::Float, _) => {
                format!("({} {} {})", of(ValueType::Float), self.chance.pick(&["+", "-", "*"]), of(ValueType::Float))
            }
            (ValueType::Text, 0) => format!("upper({})", of(ValueType::Text)),
            (ValueType::Text, 1) => format!("substring({} FROM 1 FOR {})", of(ValueType::Text), self.chance.below(4)),
            (ValueType::Text, 2) => format!("({})::text", of(ValueType::Int)),
            (ValueType::Text, _) => format!("({} || {})", of(ValueType::Text), of(ValueType::Text)),
            (ValueType::Date, 0) => format!("({})::date", of(ValueType::Timestamp)),
            (ValueType::Date, _) => format!("({} + {})", of(ValueType::Date), of(ValueType::Int)),
            (ValueType::Timestamp, 0) => format!("({} + interval '1 month 2 days 03:30:00')", of(ValueType::Date)),
            (ValueType::Timestamp, 1) => {
                format!("date_trunc('{}', {})", self.chance.pick(&["hour", "day", "month"]), of(ValueType::Timestamp))
            }
            (ValueType::Timestamp, 2) => format!("({} - interval '2 months 1 hour')", of(ValueType::Timestamp)),
            (ValueType::Timestamp, _) => {
                format!("({} {} {})", of(ValueType::Timestamp), self.chance.pick(&["+", "-"]), of(ValueType::Interval))
            }
            (ValueType::Interval, 0) => format!("({} - {})", of(ValueType::Timestamp), of(ValueType::Timestamp)),
            (ValueType::Interval, _) => {
                format!(
                    "justify_hours({} {} {})",
                    of(ValueType::Interval),
                    self.chance.pick(&["+", "-"]),
                    of(ValueType::Interval)
                )
            }
            (ValueType::WideNumeric, 0) => {
                format!("({})::numeric(30,4)", of(*self.chance.pick(&[ValueType::Long, ValueType::Numeric])))
            }
            (ValueType::WideNumeric, 1) => format!("abs({})", of(ValueType::WideNumeric)),
            (ValueType::WideNumeric, _) => format!(
                "({} {} {})",
                of(ValueType::WideNumeric),
                self.chance.pick(&["+", "-"]),
                of(ValueType::WideNumeric)
            ),
            (ValueType::Bool, _) => format!("({})", self.condition(scope, depth)),
            (ValueType::Real, 0) => format!("{}::real", of(ValueType::Int)),
            (ValueType::Real, _) => {
                format!("({} {} {})", of(ValueType::Real), self.chance.pick(&["+", "-"]), of(ValueType::Real))
            }
            (ValueType::Uuid | ValueType::Bytes, _) => of(kind),
        }
    }
}
