//! Statistics of a tier by table.

use std::collections::HashMap;
use std::ops::AddAssign;

use types::Oid;

/// Number of tables counted separately; when there are more, those without blocks are merged into one entry.
const SEPARATE_TABLES_MAX: usize = 4096;

/// Statistics of a cache tier: its present content, and hits, misses and evictions since its start. In the tier of
/// computed results, blocks are results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    pub blocks: u64,
    pub bytes: u64,
    /// Lookups that found the block.
    pub hits: u64,
    /// Lookups that did not find the block.
    pub misses: u64,
    /// Blocks evicted for others.
    pub evictions: u64,
}

impl AddAssign for CacheStats {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.evictions += other.evictions;
    }
}

impl CacheStats {
    /// Adds a block.
    pub(super) fn add_block(&mut self, bytes: u64) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    /// Removes a block.
    pub(super) fn remove_block(&mut self, bytes: u64) {
        self.blocks -= 1;
        self.bytes -= bytes;
    }
}

/// Statistics of a tier by table. A block counts for the table whose scan inserted it, a lookup for the table whose
/// scan made it.
#[derive(Debug)]
pub(super) struct TableStats {
    tables: HashMap<Oid, CacheStats>,
    /// Number of entries at which tables without blocks are merged.
    merge_threshold: usize,
}

impl TableStats {
    /// Key of the merged entry.
    const MERGED_TABLES: Oid = Oid(0);

    pub(super) fn new() -> Self {
        Self { tables: HashMap::new(), merge_threshold: SEPARATE_TABLES_MAX }
    }

    /// Returns the statistics of a table.
    pub(super) fn for_table(&mut self, table: Oid) -> &mut CacheStats {
        if self.merge_threshold <= self.tables.len() && !self.tables.contains_key(&table) {
            self.merge_tables_without_blocks();
        }
        self.tables.entry(table).or_default()
    }

    /// Merges tables without blocks into one entry, since temporary tables come and go without end.
    fn merge_tables_without_blocks(&mut self) {
        let mut folded = CacheStats::default();
        self.tables.retain(|_, counts| {
            let is_held = 0 < counts.blocks;
            if !is_held {
                folded += *counts;
            }
            is_held
        });
        *self.tables.entry(Self::MERGED_TABLES).or_default() += folded;
        self.merge_threshold = SEPARATE_TABLES_MAX.max(2 * self.tables.len());
    }

    /// Returns the sum over all tables.
    pub(super) fn sum(&self) -> CacheStats {
        self.tables.values().fold(CacheStats::default(), |mut sum, counts| {
            sum += *counts;
            sum
        })
    }

    /// Returns the statistics of each table; table 0 is the merged entry.
    pub(super) fn by_table(&self) -> Vec<(Oid, CacheStats)> {
        self.tables.iter().map(|(table, counts)| (*table, *counts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_blocks_are_counted_together_where_there_are_too_many() {
        let mut counts = TableStats::new();
        let tables = 3 * u32::try_from(SEPARATE_TABLES_MAX).unwrap();
        for table in 1..=tables {
            let counts = counts.for_table(Oid(table));
            counts.misses += 1;
            counts.blocks = u64::from(table % 1000 == 0);
        }
        assert!(counts.by_table().len() <= SEPARATE_TABLES_MAX + 1);
        assert_eq!(counts.sum().misses, u64::from(tables));
        assert_eq!(counts.sum().blocks, u64::from(tables / 1000));
        assert!((1..=tables / 1000).all(|table| counts.for_table(Oid(table * 1000)).blocks == 1));
    }
}
