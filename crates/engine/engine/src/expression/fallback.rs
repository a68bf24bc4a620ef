//! Slow but complete expressions behind fast loops.

use std::fmt;

use super::Expression;
use crate::Result;

/// Source of the slow expression for a fast one. It evaluates the same value over Arrow arrays, for batches with
/// values that the fast loop cannot compute, and returns the values or PostgreSQL's error.
pub trait Fallback: fmt::Debug + Send + Sync {
    /// Returns the slow expression over the same columns.
    ///
    /// # Errors
    /// Returns `Error::Internal` if it cannot be evaluated over arrays.
    fn expression(&self) -> Result<Expression>;
}

impl Fallback for Expression {
    fn expression(&self) -> Result<Expression> {
        Ok(self.clone())
    }
}
