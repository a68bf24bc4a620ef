//! Planning that runs wherever there is room for it.

use types::SqlResult;

/// Planning that has all that it needs with it.
pub(crate) enum Planning<T> {
    Done(T),
    Work(Box<dyn FnOnce() -> SqlResult<T> + Send>),
}

impl<T: Send + 'static> Planning<T> {
    pub(crate) fn of(work: impl FnOnce() -> SqlResult<T> + Send + 'static) -> Self {
        Self::Work(Box::new(work))
    }

    /// The same, with what becomes of its outcome.
    pub(crate) fn then<U: Send + 'static>(
        self,
        next: impl FnOnce(T) -> SqlResult<U> + Send + 'static,
    ) -> SqlResult<Planning<U>> {
        Ok(match self {
            Self::Done(outcome) => Planning::Done(next(outcome)?),
            Self::Work(work) => Planning::of(move || next(work()?)),
        })
    }
}
