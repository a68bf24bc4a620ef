//! Random aggregates, grouped or as window functions.

use super::query::{Generator, Scope};
use super::tables::ValueType;

/// Maximum number of rows for string aggregation.
const JOINED_MAX: u64 = 3_000;

impl Generator<'_> {
    /// Returns an aggregate of the kind that does not depend on the order of rows; `over` is its window, if any.
    pub(super) fn aggregate(&self, scope: &Scope, kind: ValueType, over: &str) -> String {
        let is_window = !over.is_empty();
        let of = |kind| self.value(scope, kind, u32::from(!is_window));
        let is_filtered = self.chance.one_in(6);
        let filter = if is_filtered { format!(" FILTER (WHERE {})", self.condition(scope, 0)) } else { String::new() };
        let whole = |call: String| format!("{call}{filter}{over}");
        let distinct = if !is_window && self.chance.one_in(4) { "DISTINCT " } else { "" };
        let any = *self.chance.pick(&ValueType::ALL);
        match (kind, self.chance.below(6)) {
            (ValueType::Long, 0) => whole("count(*)".to_owned()),
            (ValueType::Long, 1) => whole(format!("count({distinct}{})", of(any))),
            (ValueType::Long, 2) => whole(format!("count({})", of(any))),
            (ValueType::Long, 3) => whole(format!("sum({distinct}{})", of(ValueType::Int))),
            (ValueType::Numeric, 0) => whole(format!("sum({distinct}{})", of(ValueType::Numeric))),
            (ValueType::Numeric, 1) => whole(format!("sum({})", of(ValueType::Long))),
            (ValueType::Numeric, 2) => {
                let argument = of(*self.chance.pick(&[ValueType::Int, ValueType::Numeric]));
                format!("round({}, 4)", whole(format!("avg({distinct}{argument})")))
            }
            (ValueType::Numeric, 3) => {
                let function = self.chance.pick(&["var_pop", "var_samp", "stddev_pop", "stddev_samp"]);
                format!(
                    "round({}, 3)::numeric(20,3)",
                    whole(format!("{function}({distinct}{})", self.value(scope, ValueType::Int, 0)))
                )
            }
            (ValueType::WideNumeric, 0 | 1) => {
                format!("{}::numeric(30,4)", whole(format!("sum({distinct}{})", of(ValueType::WideNumeric))))
            }
            (ValueType::Float, 0 | 1) => whole(format!("sum({distinct}{})", of(ValueType::Float))),
            (ValueType::Float, 2) => format!("floor({})", whole(format!("avg({})", of(ValueType::Float)))),
            (ValueType::Float, 3) if !is_window => format!("floor({})", whole(format!("avg({})", of(ValueType::Real)))),
            (ValueType::Interval, 0 | 1) => {
                format!("justify_hours({})", whole(format!("sum({})", of(ValueType::Interval))))
            }
            (ValueType::Text, 0)
                if !is_window && scope.rows <= JOINED_MAX && scope.fields_of(ValueType::Text).next().is_some() =>
            {
                let texts = scope.fields_of(ValueType::Text).map(|field| field.sql.as_str()).collect::<Vec<_>>();
                let text = self.chance.pick(&texts);
                whole(format!("string_agg(DISTINCT {text}, '/' ORDER BY {text})"))
            }
            (ValueType::Bool, 0..=2) => whole(format!("bool_or({})", of(ValueType::Bool))),
            (ValueType::Bool, _) => whole(format!("bool_and({})", of(ValueType::Bool))),
            // Types without min and max.
            (ValueType::Uuid, _) => format!("{}::uuid", whole(format!("max({}::text)", of(ValueType::Uuid)))),
            (ValueType::Bytes, _) => {
                format!("decode({}, 'hex')", whole(format!("min(encode({}, 'hex'))", of(ValueType::Bytes))))
            }
            (ValueType::Real, 0) if !is_window => whole(format!("sum({})", of(ValueType::Real))),
            (ValueType::Int | ValueType::Long | ValueType::Numeric | ValueType::Date | ValueType::Timestamp, 4)
                if !is_window && self.chance.one_in(2) =>
            {
                let (fraction, direction) = (self.chance.below(11), self.chance.pick(&["", " DESC"]));
                let order = format!("ORDER BY {}{direction}", self.value(scope, kind, 0));
                let fraction = format!("{}.{}", fraction / 10, fraction % 10);
                whole(format!("percentile_disc({fraction}) WITHIN GROUP ({order})"))
            }
            (_, 4) => whole(format!("min({})", of(kind))),
            (_, _) => whole(format!("max({})", of(kind))),
        }
    }
}
