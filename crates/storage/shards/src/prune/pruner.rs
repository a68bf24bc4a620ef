//! Predicates prepared for pruning the shards of a table.

use std::cell::OnceCell;

use types::ColumnId;

use crate::predicate::ZoneMapEntry;
use crate::reader::missing_datum;
use crate::{ColumnDef, Datum, Predicate, ShardMeta, Test};

/// Prunes the shards of a table by predicates.
#[derive(Debug)]
pub struct Pruner<'a> {
    predicates: Vec<PreparedPredicate<'a>>,
}

/// Predicate prepared for pruning.
#[derive(Debug)]
pub(crate) struct PreparedPredicate<'a> {
    pub(crate) column: ColumnId,
    pub(crate) test: &'a Test,
    /// Definition of the column; `None` if the table has no such column.
    definition: Option<&'a ColumnDef>,
    /// Missing value of the column, computed on first use.
    missing: OnceCell<Option<Datum>>,
}

impl<'a> Pruner<'a> {
    /// Prepares predicates. `columns` are the table's; a column newer than a shard has its `missing` value in every
    /// row.
    #[must_use]
    pub fn new(predicates: &'a [Predicate], columns: &'a [ColumnDef]) -> Self {
        Self { predicates: predicates.iter().map(|predicate| PreparedPredicate::new(predicate, columns)).collect() }
    }

    /// Returns whether some row of the shard may pass all predicates.
    #[must_use]
    pub fn may_match(&self, shard: &ShardMeta) -> bool {
        self.predicates.iter().all(|asked| asked.may_pass(shard))
    }

    pub(crate) fn predicates(&self) -> &[PreparedPredicate<'a>] {
        &self.predicates
    }
}

impl<'a> PreparedPredicate<'a> {
    pub(super) fn new(predicate: &'a Predicate, columns: &'a [ColumnDef]) -> Self {
        let definition = columns.iter().find(|column| column.id == predicate.column);
        Self { column: predicate.column, test: &predicate.test, definition, missing: OnceCell::new() }
    }

    /// Returns whether some row of the shard may pass.
    pub(super) fn may_pass(&self, shard: &ShardMeta) -> bool {
        match shard.column(self.column) {
            Some(stats) => self.test.may_pass(&ZoneMapEntry::from_stats(shard.rows, stats)),
            None => self.missing_may_pass(shard.rows),
        }
    }

    /// Returns whether one of `rows` rows older than the column may pass.
    pub(crate) fn missing_may_pass(&self, rows: u64) -> bool {
        let Some(column) = self.definition else { return true };
        let value = self.missing.get_or_init(|| missing_datum(column)).as_ref();
        let nulls = if column.missing.is_some() { 0 } else { rows };
        self.test.may_pass(&ZoneMapEntry { rows, nulls: Some(nulls), min: value, max: value, exact: true })
    }
}
