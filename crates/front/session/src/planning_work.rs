//! Planning work that can run on any thread.

use types::SqlResult;

/// Planning that is done, or work with all its inputs that can be sent to a planning thread.
pub(crate) enum PlanningWork<T> {
    Done(T),
    Deferred(Box<dyn FnOnce() -> SqlResult<T> + Send>),
}

impl<T: Send + 'static> PlanningWork<T> {
    pub(crate) fn from_work(work: impl FnOnce() -> SqlResult<T> + Send + 'static) -> Self {
        Self::Deferred(Box::new(work))
    }

    /// Chains a step that converts the outcome.
    pub(crate) fn then<U: Send + 'static>(
        self,
        next: impl FnOnce(T) -> SqlResult<U> + Send + 'static,
    ) -> SqlResult<PlanningWork<U>> {
        Ok(match self {
            Self::Done(outcome) => PlanningWork::Done(next(outcome)?),
            Self::Deferred(work) => PlanningWork::from_work(move || next(work()?)),
        })
    }
}
