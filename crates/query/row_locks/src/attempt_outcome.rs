//! Outcome of one attempt to run a statement.

/// Outcome of one attempt to run a statement that changes or locks rows.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptOutcome<T> {
    Done(T),
    /// Another transaction came first: nothing is staged, and the statement has to be planned and run again on a newer
    /// snapshot. The locks that it has taken are not released.
    Conflict,
}

impl<T> AttemptOutcome<T> {
    /// Returns the outcome, or `conflict` if another transaction came first.
    ///
    /// # Errors
    /// `conflict`.
    pub fn ok_or<E>(self, conflict: E) -> Result<T, E> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Conflict => Err(conflict),
        }
    }
}
