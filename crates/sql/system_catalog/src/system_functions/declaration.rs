//! What a system function is: its name, how many arguments it takes, its result, and a function of one row.

use std::ops::RangeInclusive;

use datafusion::logical_expr::Volatility;
use types::SqlResult;

use super::call::Call;
use crate::rows::Cell;

/// One function, declared.
pub(super) struct Declaration {
    pub(super) name: &'static str,
    pub(super) arity: RangeInclusive<usize>,
    /// The result's type, as in a system table's column.
    pub(super) result: &'static str,
    /// Whether a NULL argument makes the result NULL without a call.
    pub(super) strict: bool,
    pub(super) volatility: Volatility,
    pub(super) call: fn(&Call<'_>) -> SqlResult<Cell>,
}

/// A function of its arguments and the statement: NULL in, NULL out.
pub(super) const fn function(
    name: &'static str,
    arity: RangeInclusive<usize>,
    result: &'static str,
    call: fn(&Call<'_>) -> SqlResult<Cell>,
) -> Declaration {
    Declaration { name, arity, result, strict: true, volatility: Volatility::Stable, call }
}

impl Declaration {
    /// Is called with NULLs too.
    pub(super) const fn with_nulls(mut self) -> Self {
        self.strict = false;
        self
    }

    /// Does something: must run each time it is met, and only then.
    pub(super) const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }
}
