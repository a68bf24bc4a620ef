//! Expression state that a worker keeps between batches: cached function results and call metrics.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::computed::Computed;
use crate::Column;
use crate::pipeline::Now;

/// Expression state of a worker: results of functions for all values of a column's domain (its dictionary entries, or
/// the integers within its bounds), and the cost of Arrow functions so far.
#[derive(Default)]
pub struct Memory {
    /// Results by function id and domain.
    tables: HashMap<(u64, Domain), Column>,
    /// Ids of functions whose results are too large to be cached.
    without_table: HashSet<u64>,
    /// Clock; `None` if time is not measured.
    now: Option<Arc<Now>>,
    calls: Calls,
}

/// Cost of Arrow functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// Number of computed values, counting a cached value once.
    pub rows: u64,
    /// Nanoseconds spent, including the conversion from and to Arrow arrays; 0 if time is not measured.
    pub busy_ns: u64,
}

impl Calls {
    /// Adds two costs.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, busy_ns: self.busy_ns + other.busy_ns }
    }
}

/// Returns a function id that is unique in this process.
pub fn function_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Domain of argument values that a function has been computed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Domain {
    /// Entries of the dictionary with this id, followed by NULL.
    Strings(u64),
    /// Integers from the first to the last, followed by NULL.
    Integers(i64, i64),
}

/// Maximum number of cached result tables; the cache is cleared when it is reached.
const TABLES_MAX: usize = 512;

impl Memory {
    /// Creates a state that measures the time of Arrow functions with this clock.
    #[must_use]
    pub fn timed_by(now: Option<Arc<Now>>) -> Self {
        Self { now, ..Self::default() }
    }

    /// Returns the cost of Arrow functions so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.calls
    }

    /// Returns the cached results of a function over a domain, computing them with `make` first if necessary.
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

    /// Returns whether the results of a function are no longer cached.
    pub(super) fn has_none(&self, function: u64) -> bool {
        self.without_table.contains(&function)
    }

    /// Stops caching the results of a function.
    pub(super) fn make_none(&mut self, function: u64) {
        self.without_table.insert(function);
    }

    /// Counts values that a function has computed.
    pub(super) fn count(&mut self, rows: usize) {
        self.calls.rows += rows as u64;
    }

    /// Runs a call and adds its time to the cost.
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

/// Gathers the results at these positions of a result table.
pub(super) fn looked_up(table: &Column, places: &[u32]) -> crate::Result<Computed> {
    table.take(places).map(Computed::rows)
}
