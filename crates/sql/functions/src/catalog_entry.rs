//! Entries of PostgreSQL's `pg_proc` that Kiln's functions implement.

use datafusion::logical_expr::Volatility;

#[cfg(test)]
mod tests;

/// Signature of one of PostgreSQL's functions, as its catalog has it.
#[derive(Debug, Clone, Copy)]
pub struct CatalogEntry {
    pub oid: u32,
    /// Names of the argument types as `pg_type` has them, separated by commas.
    pub arguments: &'static str,
    /// Name of the result type as `pg_type` has it.
    pub result: &'static str,
    pub volatility: Volatility,
    /// Whether a NULL argument makes the result NULL without a call.
    pub is_strict: bool,
    pub returns_set: bool,
}

/// Creates the entry of an immutable, strict function that returns one value.
#[must_use]
pub const fn catalog_entry(oid: u32, arguments: &'static str, result: &'static str) -> CatalogEntry {
    CatalogEntry { oid, arguments, result, volatility: Volatility::Immutable, is_strict: true, returns_set: false }
}

impl CatalogEntry {
    /// Makes the function stable.
    #[must_use]
    pub const fn stable(mut self) -> Self {
        self.volatility = Volatility::Stable;
        self
    }

    /// Makes the function volatile.
    #[must_use]
    pub const fn volatile(mut self) -> Self {
        self.volatility = Volatility::Volatile;
        self
    }

    /// Makes the function called with NULL arguments too.
    #[must_use]
    pub const fn called_on_null(mut self) -> Self {
        self.is_strict = false;
        self
    }

    /// Makes the function return a set.
    #[must_use]
    pub const fn set_returning(mut self) -> Self {
        self.returns_set = true;
        self
    }
}

/// Kind of a function as `pg_proc.prokind` tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    Scalar,
    Aggregate,
    Window,
}

/// Function of Kiln with one of the catalog entries that it implements.
#[derive(Debug, Clone, Copy)]
pub struct CatalogFunction {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: FunctionKind,
    pub entry: &'static CatalogEntry,
}

/// Returns the catalog entries of all scalar functions, aggregates and window functions, by topic.
pub fn catalog_functions() -> impl Iterator<Item = CatalogFunction> {
    use super::{SCALAR_TOPICS, WINDOW_DEFINITIONS, aggregate};
    let scalars = SCALAR_TOPICS.iter().flat_map(|(_, definitions)| *definitions);
    let scalars = scalars.map(|it| (it.name, it.description, FunctionKind::Scalar, it.catalog));
    let aggregates = aggregate::definitions().map(|it| (it.name, it.description, FunctionKind::Aggregate, it.catalog));
    let windows = WINDOW_DEFINITIONS.iter().map(|it| (it.name, it.description, FunctionKind::Window, it.catalog));
    scalars.chain(aggregates).chain(windows).flat_map(|(name, description, kind, entries)| {
        entries.iter().map(move |entry| CatalogFunction { name, description, kind, entry })
    })
}
