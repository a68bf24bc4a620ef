//! Compiled key lookups that a prepared statement caches from one execution to the next.

use std::sync::Arc;

use binder::Planned;
use catalog::CatalogState;
use key_lookup::PointProgram;
use parking_lot::Mutex;
use types::SqlType;

use crate::held::Held;
use crate::plan_basis::PlanBasis;

/// Compiled key lookup with the basis of its plan.
pub(crate) struct KeptProgram {
    program: PointProgram,
    basis: PlanBasis,
}

impl KeptProgram {
    /// Compiles a plan that was made without rows; `None` if it is no key lookup, or one that cannot be cached. A plan
    /// that depends on precision and scale of its numeric parameters is compiled for each of them: [`KeptPrograms`].
    pub(crate) fn of(planned: &Planned, held: &Held, state: &CatalogState) -> Option<Self> {
        let is_kept = match planned {
            Planned::Query(query) => query.locks.is_empty() || query.locked_limit.counts().is_ok(),
            // Changes of referring rows are planned for the present snapshot.
            Planned::Modify(modify) => modify.references.is_empty(),
            Planned::Write(write) => write.conflict.as_ref().is_none_or(|conflict| conflict.references.is_empty()),
            _ => true,
        };
        let program = PointProgram::of(planned).filter(|_| is_kept && !planned.has_read_now())?;
        Some(Self { program, basis: PlanBasis::new(held, state) })
    }

    /// Whether it only reads rows, takes no lock and does not depend on the session.
    pub(crate) fn is_select(&self) -> bool {
        matches!(&self.program.planned, Planned::Query(query) if query.locks.is_empty())
            && !self.program.needs_session()
    }

    /// Returns the key lookup if its basis is still valid.
    pub(crate) fn now(&self, held: &Held, state: &CatalogState) -> Option<&PointProgram> {
        self.basis.holds(held, state).then_some(&self.program)
    }
}

/// Compiled key lookups of a prepared statement.
pub(crate) enum KeptPrograms {
    /// None: each execution is planned.
    None,
    /// One key lookup for all parameters.
    Of(Arc<KeptProgram>),
    /// One key lookup for each combination of parameter types, which differ in precision and scale, least recently used
    /// first; `None` if the plan holds for one value only.
    ByDigits(Mutex<Vec<(ParameterTypes, Option<Arc<KeptProgram>>)>>),
}

/// Types of parameters; `None` where a type is open.
pub(crate) type ParameterTypes = Vec<Option<SqlType>>;

/// Maximum number of cached key lookups of one statement.
const KEPT_MAX: usize = 32;

impl KeptPrograms {
    /// Compiles the key lookup of a plan whose numeric parameters have no precision and scale yet.
    pub(crate) fn of(planned: &Planned, held: &Held, state: &CatalogState) -> Self {
        match KeptProgram::of(planned, held, state) {
            Some(_) if planned.depends_on_digits() => Self::ByDigits(Mutex::default()),
            Some(program) => Self::Of(Arc::new(program)),
            None => Self::None,
        }
    }

    pub(crate) fn are_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Returns the key lookup for parameters of these types, and marks it as the most recently used.
    pub(crate) fn find(&self, types: impl FnOnce() -> ParameterTypes) -> Option<Arc<KeptProgram>> {
        match self {
            Self::None => None,
            Self::Of(program) => Some(Arc::clone(program)),
            Self::ByDigits(known) => {
                let (mut known, types) = (known.lock(), types());
                let at = known.iter().rposition(|(of, _)| *of == types)?;
                known[at..].rotate_left(1);
                known.last().and_then(|(_, program)| program.clone())
            }
        }
    }

    /// Whether a key lookup for parameters of these types has not been compiled yet.
    pub(crate) fn lacks(&self, types: &ParameterTypes) -> bool {
        matches!(self, Self::ByDigits(known) if !known.lock().iter().any(|(of, _)| of == types))
    }

    /// Caches the key lookup for parameters of these types, in place of the least recently used one if there are too
    /// many.
    pub(crate) fn keep(&self, types: ParameterTypes, program: Option<Arc<KeptProgram>>) {
        if let Self::ByDigits(known) = self {
            let mut known = known.lock();
            let surplus = (known.len() + 1).saturating_sub(KEPT_MAX);
            known.drain(..surplus);
            known.push((types, program));
        }
    }
}
