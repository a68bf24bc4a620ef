//! Slow expressions that stand behind fast ones.

use std::fmt;

use super::Expression;
use crate::Result;

/// Evaluates the same value as a fast expression, over Arrow's arrays. It is asked for a batch whose values the fast one cannot compute, and has the
/// values or PostgreSQL's error.
pub trait Fallback: fmt::Debug + Send + Sync {
    /// Returns the slow expression, over the same columns.
    ///
    /// # Errors
    /// `Error::Form` where it cannot be evaluated over arrays.
    fn expression(&self) -> Result<Expression>;
}

impl Fallback for Expression {
    fn expression(&self) -> Result<Expression> {
        Ok(self.clone())
    }
}
