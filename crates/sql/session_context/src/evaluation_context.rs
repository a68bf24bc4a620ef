//! The facts beside its text that a statement's meaning depends on.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use types::text::{DateContext, DateOrder};
use types::{ObjectNames, Random, SessionZone, SqlResult, SystemRandom};

use crate::StatementContext;

/// Facts of a session and a statement that functions and casts read.
///
/// Plans carry them, so that a plan means the same in every process.
#[derive(Debug, Clone)]
pub struct EvaluationContext {
    /// `TimeZone`.
    pub zone: SessionZone,
    /// Order of day, month and year in input: the second half of `DateStyle`.
    pub date_order: DateOrder,
    /// `now()`: start of the transaction, in microseconds since 1970-01-01 UTC.
    pub transaction_us: i64,
    /// `statement_timestamp()`, in microseconds since 1970-01-01 UTC.
    pub statement_us: i64,
    /// Catalog, role and settings of the statement; `None` in worker processes, which have none of these.
    context: Option<Arc<StatementContext>>,
    /// Names of the catalog's objects; `None` without a catalog.
    names: Option<Arc<dyn ObjectNames>>,
    /// Source of randomness for `random()` and `gen_random_uuid()`.
    pub random: Arc<dyn Random>,
    /// True if a text was read whose meaning depends on the time, such as `now`.
    has_read_current_time: Arc<AtomicBool>,
    /// Number of expression nodes that planning has duplicated.
    duplicated_nodes: Arc<AtomicUsize>,
}

impl EvaluationContext {
    /// Creates the facts of a statement, with the names of the objects in its catalog.
    #[must_use]
    pub fn new(context: Arc<StatementContext>, names: Arc<dyn ObjectNames>) -> Self {
        Self {
            zone: context.settings.zone(),
            date_order: context.settings.date_context(context.transaction_us).order,
            transaction_us: context.transaction_us,
            statement_us: context.statement_us,
            random: Arc::clone(&context.random),
            context: Some(context),
            names: Some(names),
            has_read_current_time: Arc::default(),
            duplicated_nodes: Arc::default(),
        }
    }

    /// Reads a text with this session's date settings.
    ///
    /// `now` and the like mean the transaction's start; their use is recorded, see [`EvaluationContext::is_time_dependent`].
    ///
    /// # Errors
    /// Errors of `read`.
    pub fn parse_with_dates<T>(&self, read: impl Fn(&DateContext) -> SqlResult<T>) -> SqlResult<T> {
        let timeless = DateContext { order: self.date_order, zone: self.zone, now_us: None };
        read(&timeless).or_else(|_| {
            let value = read(&DateContext { now_us: Some(self.transaction_us), ..timeless })?;
            self.mark_time_dependent();
            Ok(value)
        })
    }

    /// Records that the statement's plan depends on the time.
    pub fn mark_time_dependent(&self) {
        self.has_read_current_time.store(true, Ordering::Relaxed);
    }

    /// Returns whether the statement's plan depends on the time, because of a text such as `now`.
    #[must_use]
    pub fn is_time_dependent(&self) -> bool {
        self.has_read_current_time.load(Ordering::Relaxed)
    }

    /// Creates a session without catalog, role and settings, as worker processes have it.
    #[must_use]
    pub fn without_context(zone: SessionZone, date_order: DateOrder, transaction_us: i64, statement_us: i64) -> Self {
        let (context, names, random) = (None, None, Arc::new(SystemRandom));
        let (has_read_current_time, copies) = (Arc::default(), Arc::default());
        Self {
            zone,
            date_order,
            transaction_us,
            statement_us,
            context,
            names,
            random,
            has_read_current_time,
            duplicated_nodes: copies,
        }
    }

    /// Returns the context with catalog, role and settings; `None` in worker processes.
    #[must_use]
    pub fn context(&self) -> Option<&Arc<StatementContext>> {
        self.context.as_ref()
    }

    /// Returns the names of the catalog's objects, with which values of the `reg…` types are displayed and parsed.
    #[must_use]
    pub fn names(&self) -> Option<&dyn ObjectNames> {
        self.names.as_deref()
    }

    /// Returns whether functions that need neither catalog, role nor settings give the same results in both sessions.
    #[must_use]
    pub fn has_same_facts(&self, other: &Self) -> bool {
        self.comparable_facts() == other.comparable_facts()
    }

    /// Adds duplicated expression nodes to the count, and returns the new total.
    pub fn add_duplicated_nodes(&self, nodes: usize) -> usize {
        self.duplicated_nodes.fetch_add(nodes, Ordering::Relaxed) + nodes
    }

    fn comparable_facts(&self) -> (SessionZone, DateOrder, i64, i64) {
        (self.zone, self.date_order, self.transaction_us, self.statement_us)
    }
}

impl PartialEq for EvaluationContext {
    fn eq(&self, other: &Self) -> bool {
        self.comparable_facts() == other.comparable_facts()
            && match (&self.context, &other.context) {
                (Some(own), Some(others)) => Arc::ptr_eq(own, others) || own.has_same_meaning(others),
                (own, others) => own.is_none() && others.is_none(),
            }
    }
}

impl Eq for EvaluationContext {}

impl Hash for EvaluationContext {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.comparable_facts().hash(state);
    }
}
