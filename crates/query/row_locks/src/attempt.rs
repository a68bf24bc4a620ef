//! The outcome of running a statement once.

/// The outcome of a statement that changes or locks rows.
#[derive(Debug, Clone, PartialEq)]
pub enum Attempt<T> {
    Done(T),
    /// Another transaction came first: nothing is staged, and the statement has to be planned and run again on what is committed
    /// now. What it has locked stays locked.
    Again,
}

impl<T> Attempt<T> {
    /// Returns the outcome, or `conflict` if another transaction came first.
    ///
    /// # Errors
    /// `conflict`.
    pub fn ok_or<E>(self, conflict: E) -> Result<T, E> {
        match self {
            Self::Done(done) => Ok(done),
            Self::Again => Err(conflict),
        }
    }
}
