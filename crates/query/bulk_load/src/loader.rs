//! The loader: creates loads that write to one object storage.

use std::sync::Arc;

use catalog::Table;
use objects::Objects;
use txn::Transaction;
use types::Random;

use super::Load;

/// Factory of loads into tables.
#[derive(Debug, Clone)]
pub struct Loader {
    objects: Objects,
    random: Arc<dyn Random>,
}

impl Loader {
    /// Creates a loader that writes shards to `objects`, with ids from `random`.
    #[must_use]
    pub fn new(objects: Objects, random: Arc<dyn Random>) -> Self {
        Self { objects, random }
    }

    /// Creates a load into `table` within `transaction`; up to `fresh_rows_max` rows are staged as fresh rows.
    #[must_use]
    pub fn new_load(&self, table: &Arc<Table>, transaction: &Transaction, fresh_rows_max: usize) -> Load {
        let (objects, random) = (self.objects.clone(), Arc::clone(&self.random));
        Load::new(objects, random, table, transaction, fresh_rows_max)
    }

    /// Creates a load of rows that have ids already, in a column after those of the table.
    #[must_use]
    pub fn new_load_with_ids(&self, table: &Arc<Table>, transaction: &Transaction) -> Load {
        self.new_load(table, transaction, 0).with_ids()
    }
}
