//! What computes a value where loops do not.

use std::fmt;

use super::Expression;
use crate::Result;

/// What an expression was made of. It computes the same of the same columns, row by row and slowly, and knows what to say where there is no value.
pub trait Original: fmt::Debug + Send + Sync {
    /// It, over Arrow's arrays.
    ///
    /// # Errors
    /// Where it has no such form.
    fn over_arrays(&self) -> Result<Expression>;
}

impl Original for Expression {
    fn over_arrays(&self) -> Result<Expression> {
        Ok(self.clone())
    }
}
