//! Random window functions whose results do not depend on the order of peer rows.

use super::query::{Generator, Query, Scope, named};
use super::tables::ValueType;

/// Maximum number of rows where frames are recomputed for each row.
const FRAME_ROWS_MAX: u64 = 2_500;

/// Frame bounds, in the order in which they may start and end a frame.
const EDGES: [&str; 5] = ["UNBOUNDED PRECEDING", "{} PRECEDING", "CURRENT ROW", "{} FOLLOWING", "UNBOUNDED FOLLOWING"];

impl Generator<'_> {
    pub(super) fn windows(&self, depth: u32, kinds: Option<&[ValueType]>) -> Query {
        let (scope, columns) = (self.relation(depth), self.kinds(kinds));
        let value = |kind: &ValueType| match self.chance.below(2) {
            0 => self.value(&scope, *kind, 1),
            _ => self.windowed(&scope, *kind),
        };
        let values = columns.iter().map(value).collect::<Vec<_>>();
        let sql = format!("SELECT {} FROM {}{}", named(&values), scope.from, self.filter(&scope));
        Query { sql, columns, is_ordered: false, rows: scope.rows }
    }

    fn windowed(&self, scope: &Scope, kind: ValueType) -> String {
        if !scope.key.is_empty() && self.chance.one_in(2) {
            return self.position_function(scope, kind);
        }
        let over = self.window(scope, self.peer_frame(scope));
        match (kind, self.chance.below(4)) {
            (ValueType::Long, 0) => format!("rank(){over}"),
            (ValueType::Long, 1) => format!("dense_rank(){over}"),
            (ValueType::Float, 0) => format!("floor(16 * percent_rank(){over})"),
            (ValueType::Float, 1) => format!("floor(16 * cume_dist(){over})"),
            _ => self.aggregate(scope, kind, &over),
        }
    }

    /// Returns a function of row positions, over a total order.
    fn position_function(&self, scope: &Scope, kind: ValueType) -> String {
        let mut order = self.order(scope);
        order.extend(scope.key.iter().map(|key| format!("{key}{}", self.chance.pick(&["", " DESC"]))));
        let order = format!("ORDER BY {}", order.join(", "));
        let frame = match self.chance.below(3) {
            0 => String::new(),
            _ => self.frame(self.chance.pick::<&str>(&["ROWS", "ROWS", "GROUPS"]), scope, || {
                self.chance.below(4).to_string()
            }),
        };
        let over = self.window(scope, format!("{order}{frame}"));
        let value = || self.value(scope, kind, 0);
        let rows = self.chance.below(4);
        match (kind, self.chance.below(8)) {
            (ValueType::Long, 0) => format!("row_number(){over}"),
            (ValueType::Int, 0) => format!("ntile({}){over}", 1 + rows),
            (_, 1) => format!("lag({}, {rows}){over}", value()),
            (_, 2) => format!("lead({}, {rows}, {}){over}", value(), self.constant(kind)),
            (_, 3) => format!("first_value({}){over}", value()),
            (_, 4) => format!("last_value({}){over}", value()),
            (_, 5) => format!("nth_value({}, {}){over}", value(), 1 + rows),
            _ => self.aggregate(scope, kind, &over),
        }
    }

    /// Returns an order, and a frame that contains all peers or none.
    fn peer_frame(&self, scope: &Scope) -> String {
        if self.chance.one_in(4) {
            return self.range_frame(scope);
        }
        let order = self.order(scope);
        if order.is_empty() {
            return String::new();
        }
        let frame = match self.chance.below(3) {
            0 => self.frame("GROUPS", scope, || self.chance.below(3).to_string()),
            _ => String::new(),
        };
        format!("ORDER BY {}{frame}", order.join(", "))
    }

    /// Returns a RANGE frame with a distance of the key.
    fn range_frame(&self, scope: &Scope) -> String {
        let kinds = [
            ValueType::Int,
            ValueType::Long,
            ValueType::Numeric,
            ValueType::Float,
            ValueType::Date,
            ValueType::Timestamp,
        ];
        let key = *self.chance.pick(&kinds);
        let distance = || match key {
            ValueType::Numeric | ValueType::Float => format!("{}.5", self.chance.below(20)),
            ValueType::Date | ValueType::Timestamp => {
                let parts = ["0 days", "3 days", "1 month", "2 months 36 hours", "10 days 12 hours"];
                format!("interval '{}'", self.chance.pick::<&str>(&parts))
            }
            _ => self.chance.below(5).to_string(),
        };
        let frame = self.frame("RANGE", scope, distance);
        format!("ORDER BY {}{frame}", self.key(scope, key))
    }

    fn frame(&self, units: &str, scope: &Scope, distance: impl Fn() -> String) -> String {
        let start = self.chance.below(4);
        let mut end = start.max(1) + self.chance.below(5 - start.max(1));
        if end == 4 && start != 0 && units == "ROWS" && FRAME_ROWS_MAX < scope.rows {
            end = 3;
        }
        // PostgreSQL refuses empty frames where it cannot tell how far apart values are.
        if units == "RANGE" && start == end {
            end += 1;
        }
        let edge = |edge: u64| EDGES[usize::try_from(edge).expect("a few")].replace("{}", &distance());
        format!(" {units} BETWEEN {} AND {}", edge(start), edge(end))
    }

    fn window(&self, scope: &Scope, order: String) -> String {
        let of = |_| self.value(scope, *self.chance.pick(&ValueType::ALL), 0);
        let parts = (0..self.chance.below(3)).map(of).collect::<Vec<_>>();
        let parts = if parts.is_empty() { String::new() } else { format!("PARTITION BY {} ", parts.join(", ")) };
        format!(" OVER ({parts}{order})")
    }

    fn order(&self, scope: &Scope) -> Vec<String> {
        (0..self.chance.below(3)).map(|_| self.key(scope, *self.chance.pick(&ValueType::ALL))).collect()
    }

    fn key(&self, scope: &Scope, kind: ValueType) -> String {
        let direction = self.chance.pick(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
        format!("{}{direction}", self.value(scope, kind, 0))
    }
}
