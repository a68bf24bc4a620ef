//! Compiled key lookups that a prepared statement caches from one execution to the next.

use std::sync::Arc;

use binder::StatementPlan;
use catalog::CatalogState;
use key_lookup::CompiledKeyLookup;
use parking_lot::Mutex;
use types::SqlType;

use crate::cached_plan_validity::PlanDependencies;
use crate::session_state::SessionState;

/// Compiled key lookup with the basis of its plan.
pub(crate) struct CachedKeyLookup {
    lookup: CompiledKeyLookup,
    basis: PlanDependencies,
}

impl CachedKeyLookup {
    /// Compiles a plan that was made without rows; `None` if it is no key lookup, or one that cannot be cached. A plan
    /// that depends on precision and scale of its numeric parameters is compiled for each of them:
    /// [`CachedKeyLookups`].
    pub(crate) fn try_compile(planned: &StatementPlan, held: &SessionState, state: &CatalogState) -> Option<Self> {
        let is_cacheable = match planned {
            StatementPlan::Query(query) => query.locks.is_empty() || query.locked_limit.counts().is_ok(),
            // Changes of referring rows are planned for the present snapshot.
            StatementPlan::Modify(modify) => modify.references.is_empty(),
            StatementPlan::Write(write) => {
                write.conflict.as_ref().is_none_or(|conflict| conflict.references.is_empty())
            }
            _ => true,
        };
        let program = CompiledKeyLookup::compile(planned).filter(|_| is_cacheable && !planned.depends_on_time())?;
        Some(Self { lookup: program, basis: PlanDependencies::new(held, state) })
    }

    /// Whether it only reads rows, takes no lock and does not depend on the session.
    pub(crate) fn is_select(&self) -> bool {
        matches!(&self.lookup.planned, StatementPlan::Query(query) if query.locks.is_empty())
            && !self.lookup.needs_session()
    }

    /// Returns the key lookup if its basis is still valid.
    pub(crate) fn if_valid(&self, held: &SessionState, state: &CatalogState) -> Option<&CompiledKeyLookup> {
        self.basis.is_valid_for(held, state).then_some(&self.lookup)
    }
}

/// Compiled key lookups of a prepared statement.
pub(crate) enum CachedKeyLookups {
    /// None: each execution is planned.
    None,
    /// One key lookup for all parameters.
    Single(Arc<CachedKeyLookup>),
    /// One key lookup for each combination of parameter types, which differ in precision and scale, least recently used
    /// first; `None` if the plan holds for one value only.
    ByParameterTypes(Mutex<Vec<(ParameterTypes, Option<Arc<CachedKeyLookup>>)>>),
}

/// Types of parameters; `None` where a type is open.
pub(crate) type ParameterTypes = Vec<Option<SqlType>>;

/// Maximum number of cached key lookups of one statement.
const LOOKUPS_MAX: usize = 32;

impl CachedKeyLookups {
    /// Compiles the key lookup of a plan whose numeric parameters have no precision and scale yet.
    pub(crate) fn compile(planned: &StatementPlan, held: &SessionState, state: &CatalogState) -> Self {
        match CachedKeyLookup::try_compile(planned, held, state) {
            Some(_) if planned.depends_on_digits() => Self::ByParameterTypes(Mutex::default()),
            Some(program) => Self::Single(Arc::new(program)),
            None => Self::None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the key lookup for parameters of these types, and marks it as the most recently used.
    pub(crate) fn find(&self, types: impl FnOnce() -> ParameterTypes) -> Option<Arc<CachedKeyLookup>> {
        match self {
            Self::None => None,
            Self::Single(program) => Some(Arc::clone(program)),
            Self::ByParameterTypes(lookups) => {
                let (mut known, types) = (lookups.lock(), types());
                let index = known.iter().rposition(|(of, _)| *of == types)?;
                known[index..].rotate_left(1);
                known.last().and_then(|(_, program)| program.clone())
            }
        }
    }

    /// Whether a key lookup for parameters of these types has not been compiled yet.
    pub(crate) fn needs_compiling(&self, types: &ParameterTypes) -> bool {
        matches!(self, Self::ByParameterTypes(lookups) if !lookups.lock().iter().any(|(of, _)| of == types))
    }

    /// Caches the key lookup for parameters of these types, in place of the least recently used one if there are too
    /// many.
    pub(crate) fn insert(&self, types: ParameterTypes, program: Option<Arc<CachedKeyLookup>>) {
        if let Self::ByParameterTypes(lookups) = self {
            let mut known = lookups.lock();
            let surplus = (known.len() + 1).saturating_sub(LOOKUPS_MAX);
            known.drain(..surplus);
            known.push((types, program));
        }
    }
}
