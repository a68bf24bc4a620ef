//! Random aggregates, grouped or as window functions.

use super::query::{Generator, Scope};
use super::tables::Kind;

/// Maximum number of rows for string aggregation.
const JOINED_MAX: u64 = 3_000;

impl Generator<'_> {
    /// Returns an aggregate of the kind that does not depend on the order of rows; `over` is its window, if any.
    pub(super) fn aggregate(&self, scope: &Scope, kind: Kind, over: &str) -> String {
        let is_window = !over.is_empty();
        let of = |kind| self.value(scope, kind, u32::from(!is_window));
        let is_filtered = self.chance.once_in(6);
        let filter = if is_filtered { format!(" FILTER (WHERE {})", self.condition(scope, 0)) } else { String::new() };
        let whole = |call: String| format!("{call}{filter}{over}");
        let distinct = if !is_window && self.chance.once_in(4) { "DISTINCT " } else { "" };
        let any = *self.chance.pick(&Kind::ALL);
        match (kind, self.chance.below(6)) {
            (Kind::Long, 0) => whole("count(*)".to_owned()),
            (Kind::Long, 1) => whole(format!("count({distinct}{})", of(any))),
            (Kind::Long, 2) => whole(format!("count({})", of(any))),
            (Kind::Long, 3) => whole(format!("sum({distinct}{})", of(Kind::Int))),
            (Kind::Exact, 0) => whole(format!("sum({distinct}{})", of(Kind::Exact))),
            (Kind::Exact, 1) => whole(format!("sum({})", of(Kind::Long))),
            (Kind::Exact, 2) => {
                let argument = of(*self.chance.pick(&[Kind::Int, Kind::Exact]));
                format!("round({}, 4)", whole(format!("avg({distinct}{argument})")))
            }
            (Kind::Exact, 3) => {
                let function = self.chance.pick(&["var_pop", "var_samp", "stddev_pop", "stddev_samp"]);
                format!(
                    "round({}, 3)::numeric(20,3)",
                    whole(format!("{function}({distinct}{})", self.value(scope, Kind::Int, 0)))
                )
            }
            (Kind::Wide, 0 | 1) => format!("{}::numeric(30,4)", whole(format!("sum({distinct}{})", of(Kind::Wide)))),
            (Kind::Float, 0 | 1) => whole(format!("sum({distinct}{})", of(Kind::Float))),
            (Kind::Float, 2) => format!("floor({})", whole(format!("avg({})", of(Kind::Float)))),
            (Kind::Float, 3) if !is_window => format!("floor({})", whole(format!("avg({})", of(Kind::Real)))),
            (Kind::Span, 0 | 1) => format!("justify_hours({})", whole(format!("sum({})", of(Kind::Span)))),
            (Kind::Text, 0) if !is_window && scope.rows <= JOINED_MAX && scope.of(Kind::Text).next().is_some() => {
                let texts = scope.of(Kind::Text).map(|field| field.sql.as_str()).collect::<Vec<_>>();
                let text = self.chance.pick(&texts);
                whole(format!("string_agg(DISTINCT {text}, '/' ORDER BY {text})"))
            }
            (Kind::Bool, 0..=2) => whole(format!("bool_or({})", of(Kind::Bool))),
            (Kind::Bool, _) => whole(format!("bool_and({})", of(Kind::Bool))),
            // Types without min and max.
            (Kind::Uuid, _) => format!("{}::uuid", whole(format!("max({}::text)", of(Kind::Uuid)))),
            (Kind::Bytes, _) => {
                format!("decode({}, 'hex')", whole(format!("min(encode({}, 'hex'))", of(Kind::Bytes))))
            }
            (Kind::Real, 0) if !is_window => whole(format!("sum({})", of(Kind::Real))),
            (Kind::Int | Kind::Long | Kind::Exact | Kind::Date | Kind::Moment, 4)
                if !is_window && self.chance.once_in(2) =>
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
