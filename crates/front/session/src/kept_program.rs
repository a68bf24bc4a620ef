//! Programs of statements that find their rows by an index, as a prepared statement keeps them from one execution to the next.

use std::sync::Arc;

use binder::Planned;
use catalog::CatalogState;
use key_lookup::PointProgram;
use parking_lot::Mutex;
use types::SqlType;

use crate::held::Held;
use crate::plan_basis::PlanBasis;

/// A program and what its plan was made with.
pub(crate) struct KeptProgram {
    program: PointProgram,
    basis: PlanBasis,
}

impl KeptProgram {
    /// The program of a plan that was made without rows; `None` for a statement that has none, or whose program cannot be kept. A plan whose
    /// numeric parameters have no digits yet, and decide what it is, has to be made for each digits: [`KeptPrograms`].
    pub(crate) fn of(planned: &Planned, held: &Held, state: &CatalogState) -> Option<Self> {
        let is_kept = match planned {
            Planned::Query(query) => query.locks.is_empty() || query.locked_limit.counts().is_ok(),
            // What becomes of referring rows is planned for now.
            Planned::Modify(modify) => modify.references.is_empty(),
            Planned::Write(write) => write.conflict.as_ref().is_none_or(|conflict| conflict.references.is_empty()),
            _ => true,
        };
        let program = PointProgram::of(planned).filter(|_| is_kept && !planned.has_read_now())?;
        Some(Self { program, basis: PlanBasis::new(held, state) })
    }

    /// Whether it gives rows and changes nothing, not even a lock, and does not ask who runs it.
    pub(crate) fn is_select(&self) -> bool {
        matches!(&self.program.planned, Planned::Query(query) if query.locks.is_empty())
            && !self.program.needs_session()
    }

    /// The program, if its plan would be made the same now.
    pub(crate) fn now(&self, held: &Held, state: &CatalogState) -> Option<&PointProgram> {
        self.basis.holds(held, state).then_some(&self.program)
    }
}

/// The programs of a prepared statement.
pub(crate) enum KeptPrograms {
    /// It is planned for each use.
    None,
    /// One for all parameters.
    Of(Arc<KeptProgram>),
    /// One for each digits that numeric parameters have had, the last used last; `None` where the plan holds for one value only.
    ByDigits(Mutex<Vec<(ParameterTypes, Option<Arc<KeptProgram>>)>>),
}

pub(crate) type ParameterTypes = Vec<Option<SqlType>>;

/// Programs of one statement that are kept.
const KEPT_MAX: usize = 32;

impl KeptPrograms {
    /// The programs of a statement, from its plan for numeric parameters of unknown digits.
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

    /// The program for parameters of these types.
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

    /// Whether a program should be made for parameters of these types.
    pub(crate) fn lacks(&self, types: &ParameterTypes) -> bool {
        matches!(self, Self::ByDigits(known) if !known.lock().iter().any(|(of, _)| of == types))
    }

    pub(crate) fn keep(&self, types: ParameterTypes, program: Option<Arc<KeptProgram>>) {
        if let Self::ByDigits(known) = self {
            let mut known = known.lock();
            let surplus = (known.len() + 1).saturating_sub(KEPT_MAX);
            known.drain(..surplus);
            known.push((types, program));
        }
    }
}
