//! Declarations of system functions: name, arity, result and a function of one row.

use std::ops::RangeInclusive;

use datafusion::logical_expr::Volatility;
use functions::CatalogEntry;
use types::SqlResult;

use super::scalar_function::FunctionCall;
use crate::row_builder::Cell;

/// Declaration of one function.
pub(super) struct FunctionDeclaration {
    pub(super) name: &'static str,
    /// One line of documentation, in PostgreSQL's words where it has the function.
    pub(super) description: &'static str,
    pub(super) arity: RangeInclusive<usize>,
    /// Type of the result, in the form of a system table's column declaration.
    pub(super) result: &'static str,
    /// Whether a NULL argument makes the result NULL without a call.
    pub(super) strict: bool,
    pub(super) volatility: Volatility,
    /// PostgreSQL's functions of this name that it implements.
    pub(super) catalog: &'static [CatalogEntry],
    pub(super) call: fn(&FunctionCall<'_>) -> SqlResult<Cell>,
}

/// Declares a strict, stable function of its arguments and the statement.
pub(super) const fn function(
    name: &'static str,
    description: &'static str,
    arity: RangeInclusive<usize>,
    result: &'static str,
    call: fn(&FunctionCall<'_>) -> SqlResult<Cell>,
) -> FunctionDeclaration {
    FunctionDeclaration {
        name,
        description,
        arity,
        result,
        strict: true,
        volatility: Volatility::Stable,
        catalog: &[],
        call,
    }
}

impl FunctionDeclaration {
    /// Declares the function as called with NULL arguments too.
    pub(super) const fn with_nulls(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Adds PostgreSQL's functions of this name that it implements.
    pub(super) const fn in_catalog(mut self, catalog: &'static [CatalogEntry]) -> Self {
        self.catalog = catalog;
        self
    }

    /// Declares the function as volatile: it has side effects, and is called once for each evaluation.
    pub(super) const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }
}
