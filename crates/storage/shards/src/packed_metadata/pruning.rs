//! Pruning of packed shards.

use types::ColumnId;

use crate::packed_metadata::PackedShards;
use crate::packed_metadata::shard_set::ShardSet;
use crate::predicate::ZoneMapEntry;
use crate::prune::{PreparedPredicate, Pruner};

impl PackedShards {
    /// Returns the positions of the shards for which [`crate::prune::may_match`] is true, ascending.
    #[must_use]
    pub fn matching(&self, pruner: &Pruner<'_>) -> Vec<usize> {
        if !pruner.predicates().iter().all(|asked| self.may_any_shard_pass(asked)) {
            return Vec::new();
        }
        let mut chosen = ShardSet::all(self.len());
        for asked in pruner.predicates() {
            // If some shards are older than the column, packed bounds do not cover them.
            if let Some(column) = self.column(asked.column).filter(|column| column.shard_count == self.len()) {
                column.filter(asked.test, &mut chosen);
            }
        }
        let passes = |shard: &usize| pruner.predicates().iter().all(|asked| self.may_shard_pass(asked, *shard));
        chosen.iter().filter(passes).collect()
    }

    /// Returns whether a row of any shard may pass, by merged statistics.
    fn may_any_shard_pass(&self, asked: &PreparedPredicate<'_>) -> bool {
        let column = self.column(asked.column);
        let are_some_older = column.is_none_or(|column| column.shard_count < self.len());
        column.is_some_and(|column| asked.test.may_pass(&column.merged_zone()))
            || are_some_older && asked.missing_may_pass(self.total_rows)
    }

    /// Returns whether a row of the shard may pass.
    fn may_shard_pass(&self, asked: &PreparedPredicate<'_>, shard: usize) -> bool {
        let rows = self.rows(shard);
        match self.column(asked.column).filter(|column| column.is_in_shard(shard)) {
            Some(column) => column.with_zone(shard, rows, |zone| asked.test.may_pass(zone)),
            None => asked.missing_may_pass(rows),
        }
    }

    /// Returns the positions of the shards for whose zone-map entry of `column` `ask` returns true, and of those
    /// without the column, ascending. If all shards have bounds, the merged entry is tested first, so `ask` must accept
    /// a merged entry if it accepts one of its parts.
    pub fn filter_by_zone<'a>(
        &'a self,
        column: ColumnId,
        may_match: impl Fn(&ZoneMapEntry<'_>) -> bool + 'a,
    ) -> Box<dyn Iterator<Item = usize> + 'a> {
        let Some(column) = self.column(column) else { return Box::new(0..self.len()) };
        if column.shard_count == self.len() && column.is_bounded && !may_match(&column.merged_zone()) {
            return Box::new(std::iter::empty());
        }
        let is_wanted = move |shard: &usize| {
            !column.is_in_shard(*shard) || column.with_zone(*shard, self.rows(*shard), |zone| may_match(zone))
        };
        Box::new((0..self.len()).filter(is_wanted))
    }
}
