//! What a tier holds of each table, and how it has served it.

use std::collections::HashMap;
use std::ops::AddAssign;

use types::Oid;

/// So many tables are counted one by one; beyond, those of which nothing is held are counted together.
const TABLES_MAX: usize = 4096;

/// What a tier of the cache holds, and what happened since it was made. Blocks are results in the tier of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheUse {
    pub blocks: u64,
    pub bytes: u64,
    /// Blocks that were asked for and found.
    pub hits: u64,
    /// Blocks that were asked for and not found.
    pub misses: u64,
    /// Blocks that had to go for others.
    pub evictions: u64,
}

impl AddAssign for CacheUse {
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.evictions += other.evictions;
    }
}

impl CacheUse {
    /// One block more is held.
    pub(super) fn take(&mut self, bytes: u64) {
        self.blocks += 1;
        self.bytes += bytes;
    }

    /// One block less is held.
    pub(super) fn give(&mut self, bytes: u64) {
        self.blocks -= 1;
        self.bytes -= bytes;
    }
}

/// A tier's use by table. A block counts for the table whose scan brought it, a question for the table whose scan asks.
#[derive(Debug)]
pub(super) struct Counts {
    tables: HashMap<Oid, CacheUse>,
    fold_at: usize,
}

impl Counts {
    /// What is counted for no table in particular.
    const NO_TABLE: Oid = Oid(0);

    pub(super) fn new() -> Self {
        Self { tables: HashMap::new(), fold_at: TABLES_MAX }
    }

    /// The counts of a table.
    pub(super) fn of(&mut self, table: Oid) -> &mut CacheUse {
        if self.fold_at <= self.tables.len() && !self.tables.contains_key(&table) {
            self.fold();
        }
        self.tables.entry(table).or_default()
    }

    /// Tables of which nothing is held become one: temporary ones come and go without end.
    fn fold(&mut self) {
        let mut folded = CacheUse::default();
        self.tables.retain(|_, counts| {
            let is_held = 0 < counts.blocks;
            if !is_held {
                folded += *counts;
            }
            is_held
        });
        *self.tables.entry(Self::NO_TABLE).or_default() += folded;
        self.fold_at = TABLES_MAX.max(2 * self.tables.len());
    }

    /// All tables together.
    pub(super) fn sum(&self) -> CacheUse {
        self.tables.values().fold(CacheUse::default(), |mut sum, counts| {
            sum += *counts;
            sum
        })
    }

    /// Each table's; of the table 0 what no table is known for.
    pub(super) fn by_table(&self) -> Vec<(Oid, CacheUse)> {
        self.tables.iter().map(|(table, counts)| (*table, *counts)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_blocks_are_counted_together_where_there_are_too_many() {
        let mut counts = Counts::new();
        let tables = 3 * u32::try_from(TABLES_MAX).unwrap();
        for table in 1..=tables {
            let counts = counts.of(Oid(table));
            counts.misses += 1;
            counts.blocks = u64::from(table % 1000 == 0);
        }
        assert!(counts.by_table().len() <= TABLES_MAX + 1);
        assert_eq!(counts.sum().misses, u64::from(tables));
        assert_eq!(counts.sum().blocks, u64::from(tables / 1000));
        assert!((1..=tables / 1000).all(|table| counts.of(Oid(table * 1000)).blocks == 1));
    }
}
