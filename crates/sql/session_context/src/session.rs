//! What the meaning of a statement depends on besides its text.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use types::text::{DateContext, DateOrder};
use types::{ObjectNames, Random, SessionZone, SqlResult, SystemRandom};

use crate::StatementContext;

/// The facts of a session and statement that functions and casts read. Plans carry them, so a plan means the same wherever it runs.
#[derive(Debug, Clone)]
pub struct Session {
    /// `TimeZone`.
    pub zone: SessionZone,
    /// The second half of `DateStyle`.
    pub date_order: DateOrder,
    /// `now()`: microseconds since 1970-01-01 UTC at the start of the transaction.
    pub transaction_us: i64,
    /// `statement_timestamp()`.
    pub statement_us: i64,
    /// Catalog, role and settings of the statement; `None` in another process, which has none of these.
    context: Option<Arc<StatementContext>>,
    /// Names of the objects of that catalog; `None` where there is none.
    names: Option<Arc<dyn ObjectNames>>,
    /// Where `random()` and `gen_random_uuid()` take their chance.
    pub random: Arc<dyn Random>,
    /// Whether a text was read that means something else at another time.
    has_read_now: Arc<AtomicBool>,
    /// Nodes of expressions that the statement's plan has as copies.
    copies: Arc<AtomicUsize>,
}

impl Session {
    /// The facts of a statement, with the names of the objects in its own catalog.
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
            has_read_now: Arc::default(),
            copies: Arc::default(),
        }
    }

    /// Reads a text as this session reads dates; `now` and the like mean the transaction's start, and that there was one of them is noted.
    ///
    /// # Errors
    /// What `read` finds.
    pub fn read_date<T>(&self, read: impl Fn(&DateContext) -> SqlResult<T>) -> SqlResult<T> {
        let timeless = DateContext { order: self.date_order, zone: self.zone, now_us: None };
        read(&timeless).or_else(|_| {
            let value = read(&DateContext { now_us: Some(self.transaction_us), ..timeless })?;
            self.note_read_now();
            Ok(value)
        })
    }

    /// Notes that the statement's plan has something that means something else at another time.
    pub fn note_read_now(&self) {
        self.has_read_now.store(true, Ordering::Relaxed);
    }

    /// Whether a text that was read for this statement means something else at another time.
    #[must_use]
    pub fn has_read_now(&self) -> bool {
        self.has_read_now.load(Ordering::Relaxed)
    }

    /// A session of which no more is known than these facts: it has no catalog, no role and no settings.
    #[must_use]
    pub fn without_context(zone: SessionZone, date_order: DateOrder, transaction_us: i64, statement_us: i64) -> Self {
        let (context, names, random) = (None, None, Arc::new(SystemRandom));
        let (has_read_now, copies) = (Arc::default(), Arc::default());
        Self { zone, date_order, transaction_us, statement_us, context, names, random, has_read_now, copies }
    }

    /// The statement whose catalog, role and settings the session has; `None` in a process that has none.
    #[must_use]
    pub fn context(&self) -> Option<&Arc<StatementContext>> {
        self.context.as_ref()
    }

    /// The names of the catalog's objects, which values of the `reg…` types are shown and read by.
    #[must_use]
    pub fn names(&self) -> Option<&dyn ObjectNames> {
        self.names.as_deref()
    }

    /// Whether both give functions that need neither catalog nor role nor settings the same.
    #[must_use]
    pub fn has_facts_of(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Counts `nodes` of expressions that were copied, and returns how many there are now.
    pub fn count_copies(&self, nodes: usize) -> usize {
        self.copies.fetch_add(nodes, Ordering::Relaxed) + nodes
    }

    fn key(&self) -> (SessionZone, DateOrder, i64, i64) {
        (self.zone, self.date_order, self.transaction_us, self.statement_us)
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
            && match (&self.context, &other.context) {
                (Some(own), Some(others)) => Arc::ptr_eq(own, others) || own.means_as(others),
                (own, others) => own.is_none() && others.is_none(),
            }
    }
}

impl Eq for Session {}

impl Hash for Session {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
