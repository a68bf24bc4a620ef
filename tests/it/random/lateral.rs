//! Random LATERAL subqueries: for each row of a relation, matching rows of a table.

use super::condition::PAIRS_MAX;
use super::query::{Generator, Scope, named, outputs};

impl Generator<'_> {
    pub(super) fn lateral(&self, depth: u32) -> Scope {
        let (left, inner) = (self.operand(depth - 1), self.table());
        let Some((outer, other)) = self.keys(&left, &inner) else { return left };
        if PAIRS_MAX < left.rows * inner.rows {
            return left;
        }
        let (name, columns, is_one) = (self.name(), self.kinds(None), self.chance.one_in(2));
        let value = |kind| if is_one { self.aggregate(&inner, kind, "") } else { self.value(&inner, kind, 1) };
        let values = columns.iter().map(|kind| value(*kind)).collect::<Vec<_>>();
        let some = match is_one {
            true => String::new(),
            false => format!(" ORDER BY {} LIMIT {}", inner.key.join(", "), 1 + self.chance.below(3)),
        };
        let subquery = format!("SELECT {} FROM {} WHERE {other} = {outer}{some}", named(&values), inner.from);
        let from = match self.chance.below(2) {
            0 => format!("{} CROSS JOIN LATERAL ({subquery}) AS {name}", left.from),
            _ => format!("{} LEFT JOIN LATERAL ({subquery}) AS {name} ON true", left.from),
        };
        let fields = left.fields.iter().cloned().chain(outputs(&name, &columns)).collect();
        let key = if is_one { left.key } else { Vec::new() };
        Scope { from, is_join: true, fields, key, rows: if is_one { left.rows } else { left.rows * 3 } }
    }
}
