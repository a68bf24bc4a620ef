//! Which of many shards may have rows that a query wants.

use types::ColumnId;

use crate::packed::PackedShards;
use crate::packed::chosen::Chosen;
use crate::predicate::Zone;
use crate::prune::{Asked, Pruner};

impl PackedShards {
    /// The places of the shards that [`crate::prune::may_match`] says may match, ascending.
    #[must_use]
    pub fn matching(&self, pruner: &Pruner<'_>) -> Vec<usize> {
        if !pruner.asked().iter().all(|asked| self.may_one_pass(asked)) {
            return Vec::new();
        }
        let mut chosen = Chosen::all(self.len());
        for asked in pruner.asked() {
            // Where some are older than the column, their bounds are none of it.
            if let Some(column) = self.column(asked.column).filter(|column| column.carried == self.len()) {
                column.keep(asked.test, &mut chosen);
            }
        }
        let passes = |shard: &usize| pruner.asked().iter().all(|asked| self.passes(asked, *shard));
        chosen.iter().filter(passes).collect()
    }

    /// Whether one of them may pass, by what is known of all together.
    fn may_one_pass(&self, asked: &Asked<'_>) -> bool {
        let column = self.column(asked.column);
        let are_some_older = column.is_none_or(|column| column.carried < self.len());
        column.is_some_and(|column| asked.test.may_pass(&column.whole()))
            || are_some_older && asked.older_may_pass(self.all_rows)
    }

    fn passes(&self, asked: &Asked<'_>, shard: usize) -> bool {
        let rows = self.rows(shard);
        match self.column(asked.column).filter(|column| column.is_carried_by(shard)) {
            Some(column) => column.ask(shard, rows, |zone| asked.test.may_pass(zone)),
            None => asked.older_may_pass(rows),
        }
    }

    /// The places of the shards of whose column `ask` says yes, and of those that do not carry it, ascending. Of what has no value known to be
    /// the least or the greatest it is asked one by one; else of all together first, where it must say yes if it says so of one.
    pub fn asked<'a>(
        &'a self,
        column: ColumnId,
        ask: impl Fn(&Zone<'_>) -> bool + 'a,
    ) -> Box<dyn Iterator<Item = usize> + 'a> {
        let Some(column) = self.column(column) else { return Box::new(0..self.len()) };
        if column.carried == self.len() && column.is_bounded && !ask(&column.whole()) {
            return Box::new(std::iter::empty());
        }
        let is_wanted = move |shard: &usize| {
            !column.is_carried_by(*shard) || column.ask(*shard, self.rows(*shard), |zone| ask(zone))
        };
        Box::new((0..self.len()).filter(is_wanted))
    }
}
