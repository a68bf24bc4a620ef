//! What a worker remembers from batch to batch.

use std::collections::HashMap;

use super::Computed;
use crate::Column;

/// Results of functions over all values that a column can have: its strings, or the integers within its bounds.
#[derive(Debug, Default)]
pub struct Memory {
    tables: HashMap<(u64, Domain), Column>,
}

/// The values that a function was computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    /// Strings, by their id; then NULL.
    Strings(u64),
    /// Integers from the first to the last; then NULL.
    Integers(i64, i64),
}

/// Tables that are remembered.
const TABLES_MAX: usize = 512;

impl Memory {
    /// The table of a function over a domain, made where it is not remembered.
    pub(super) fn table(
        &mut self,
        function: u64,
        domain: Domain,
        make: impl FnOnce() -> crate::Result<Column>,
    ) -> crate::Result<&Column> {
        if TABLES_MAX <= self.tables.len() && !self.tables.contains_key(&(function, domain)) {
            self.tables.clear();
        }
        match self.tables.entry((function, domain)) {
            std::collections::hash_map::Entry::Occupied(table) => Ok(table.into_mut()),
            std::collections::hash_map::Entry::Vacant(place) => Ok(place.insert(make()?)),
        }
    }
}

/// The rows of a table that codes name.
pub(super) fn looked_up(table: &Column, places: &[u32]) -> crate::Result<Computed> {
    table.take(places).map(Computed::rows)
}
