//! What a worker remembers from batch to batch.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::computed::Computed;
use crate::Column;
use crate::pipeline::Now;

/// Results of functions over all values that a column can have: its strings, or the integers within its bounds; and what functions over
/// Arrow's arrays have cost so far.
#[derive(Default)]
pub struct Memory {
    tables: HashMap<(u64, Domain), Column>,
    /// Functions whose values are too large for tables.
    without_table: HashSet<u64>,
    /// Tells the time, where it is measured.
    now: Option<Arc<Now>>,
    calls: Calls,
}

/// What functions over Arrow's arrays have cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Values that they have computed: of rows, or once for each of those that a column can have.
    pub rows: u64,
    /// The time that they took, arrays made and read included; 0 where it is not measured.
    pub busy_ns: u64,
}

impl Calls {
    /// Of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, busy_ns: self.busy_ns + other.busy_ns }
    }
}

/// A number for a function, which no other function of the process has.
pub fn function_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
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
    /// Has the time measured that functions over Arrow's arrays take.
    #[must_use]
    pub fn timed_by(now: Option<Arc<Now>>) -> Self {
        Self { now, ..Self::default() }
    }

    /// What functions over Arrow's arrays have cost so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.calls
    }

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
            Entry::Occupied(table) => Ok(table.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(make()?)),
        }
    }

    /// Whether no table is to be made of a function any more.
    pub(super) fn has_none(&self, function: u64) -> bool {
        self.without_table.contains(&function)
    }

    /// Has no more tables made of a function.
    pub(super) fn make_none(&mut self, function: u64) {
        self.without_table.insert(function);
    }

    /// Counts values that a function has computed.
    pub(super) fn count(&mut self, rows: usize) {
        self.calls.rows += rows as u64;
    }

    /// Counts the time that a call takes.
    pub(super) fn timed<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        let Some(now) = self.now.clone() else { return call(self) };
        let began_ns = now();
        let outcome = call(self);
        self.calls.busy_ns += now().saturating_sub(began_ns);
        outcome
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("tables", &self.tables.len()).field("calls", &self.calls).finish_non_exhaustive()
    }
}

/// The rows of a table that codes name.
pub(super) fn looked_up(table: &Column, places: &[u32]) -> crate::Result<Computed> {
    table.take(places).map(Computed::rows)
}
