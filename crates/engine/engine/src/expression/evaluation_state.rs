//! Expression state that a worker keeps between batches: cached function results and call metrics.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::columnar_value::ColumnarValue;
use crate::Column;
use crate::pipeline::NanoClock;

/// Expression state of a worker: results of functions for all values of a column's domain (its dictionary entries, or
/// the integers within its bounds), and the cost of Arrow functions so far.
#[derive(Default)]
pub struct ExpressionState {
    /// Results by function id and domain.
    result_tables: HashMap<(u64, ArgumentDomain), Column>,
    /// Ids of functions whose results are too large to be cached.
    uncached_functions: HashSet<u64>,
    /// Clock; `None` if time is not measured.
    clock: Option<Arc<NanoClock>>,
    calls: CallCosts,
}

/// Cost of Arrow functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// Number of computed values, counting a cached value once.
    pub rows: u64,
    /// Nanoseconds spent, including the conversion from and to Arrow arrays; 0 if time is not measured.
    pub busy_ns: u64,
}

impl CallCosts {
    /// Adds two costs.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
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
pub(super) enum ArgumentDomain {
    /// Entries of the dictionary with this id, followed by NULL.
    Strings(u64),
    /// Integers from the first to the last, followed by NULL.
    Integers(i64, i64),
}

/// Maximum number of cached result tables; the cache is cleared when it is reached.
const TABLES_MAX: usize = 512;

impl ExpressionState {
    /// Creates a state that measures the time of Arrow functions with this clock.
    #[must_use]
    pub fn with_clock(now: Option<Arc<NanoClock>>) -> Self {
        Self { clock: now, ..Self::default() }
    }

    /// Returns the cost of Arrow functions so far.
    #[must_use]
    pub fn call_costs(&self) -> CallCosts {
        self.calls
    }

    /// Returns the cached results of a function over a domain, computing them with `make` first if necessary.
    pub(super) fn result_table(
        &mut self,
        function: u64,
        domain: ArgumentDomain,
        make: impl FnOnce() -> crate::Result<Column>,
    ) -> crate::Result<&Column> {
        if TABLES_MAX <= self.result_tables.len() && !self.result_tables.contains_key(&(function, domain)) {
            self.result_tables.clear();
        }
        match self.result_tables.entry((function, domain)) {
            Entry::Occupied(table) => Ok(table.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(make()?)),
        }
    }

    /// Returns whether the results of a function are no longer cached.
    pub(super) fn is_uncached(&self, function: u64) -> bool {
        self.uncached_functions.contains(&function)
    }

    /// Stops caching the results of a function.
    pub(super) fn disable_cache(&mut self, function: u64) {
        self.uncached_functions.insert(function);
    }

    /// Counts values that a function has computed.
    pub(super) fn count_rows(&mut self, rows: usize) {
        self.calls.rows += rows as u64;
    }

    /// Runs a call and adds its time to the cost.
    pub(super) fn time_call<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        let Some(now) = self.clock.clone() else { return call(self) };
        let began_ns = now();
        let outcome = call(self);
        self.calls.busy_ns += now().saturating_sub(began_ns);
        outcome
    }
}

impl fmt::Debug for ExpressionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpressionState")
            .field("tables", &self.result_tables.len())
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

/// Gathers the results at these positions of a result table.
pub(super) fn look_up(table: &Column, places: &[u32]) -> crate::Result<ColumnarValue> {
    table.take(places).map(ColumnarValue::from_column)
}
