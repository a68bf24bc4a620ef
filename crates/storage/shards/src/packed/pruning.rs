//! Pruning of packed shards.

use types::ColumnId;

use crate::packed::PackedShards;
use crate::packed::chosen::Chosen;
use crate::predicate::Zone;
use crate::prune::{Asked, Pruner};

impl PackedShards {
    /// Returns the positions of the shards for which [`crate::prune::may_match`] is true, ascending.
    #[must_use]
    pub fn matching(&self, pruner: &Pruner<'_>) -> Vec<usize> {
        if !pruner.asked().iter().all(|asked| self.may_one_pass(asked)) {
            return Vec::new();
        }
        let mut chosen = Chosen::all(self.len());
        for asked in pruner.asked() {
            // If some shards are older than the column, packed bounds do not cover them.
            if let Some(column) = self.column(asked.column).filter(|column| column.carried == self.len()) {
                column.keep(asked.test, &mut chosen);
            }
        }
        let passes = |shard: &usize| pruner.asked().iter().all(|asked| self.passes(asked, *shard));
        chosen.iter().filter(passes).collect()
    }

    /// Returns whether a row of any shard may pass, by merged statistics.
    fn may_one_pass(&self, asked: &Asked<'_>) -> bool {
        let column = self.column(asked.column);
        let are_some_older = column.is_none_or(|column| column.carried < self.len());
        column.is_some_and(|column| asked.test.may_pass(&column.whole()))
            || are_some_older && asked.older_may_pass(self.all_rows)
    }

    /// Returns whether a row of the shard may pass.
    fn passes(&self, asked: &Asked<'_>, shard: usize) -> bool {
        let rows = self.rows(shard);
        match self.column(asked.column).filter(|column| column.is_carried_by(shard)) {
            Some(column) => column.ask(shard, rows, |zone| asked.test.may_pass(zone)),
            None => asked.older_may_pass(rows),
        }
    }

    /// Returns the positions of the shards for whose zone-map entry of `column` `ask` returns true, and of those
    /// without the column, ascending. If all shards have bounds, the merged entry is tested first, so `ask` must accept
    /// a merged entry if it accepts one of its parts.
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
