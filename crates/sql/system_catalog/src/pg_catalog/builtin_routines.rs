//! The functions of `pg_proc`, derived from the declarations of Kiln's functions, by OID and name.

use std::sync::LazyLock;

use datafusion::logical_expr::Volatility;
use functions::{CatalogFunction, FunctionKind};
use types::{Oid, SqlType};

use super::pg_type::PSEUDO_TYPES;
use super::type_io_functions;
use crate::system_functions;

/// Row of `pg_proc`.
pub(crate) struct Routine {
    pub(crate) oid: Oid,
    pub(crate) name: &'static str,
    /// OIDs of the argument types.
    pub(crate) arguments: Vec<u32>,
    pub(crate) result: u32,
    pub(crate) returns_set: bool,
    /// `f` for a function, `a` for an aggregate, `w` for a window function.
    pub(crate) kind: &'static str,
    /// `i` for immutable, `s` for stable, `v` for volatile.
    pub(crate) volatility: &'static str,
    /// Whether a NULL argument makes the result NULL without a call.
    pub(super) is_strict: bool,
    pub(crate) description: &'static str,
}

/// All of them: functions of statements, then the input and output functions of types.
pub(crate) static ROUTINES: LazyLock<Vec<Routine>> = LazyLock::new(|| {
    let called = functions::catalog_functions().chain(system_functions::catalog_functions());
    let io_functions = type_io_functions::catalog_functions();
    called.chain(io_functions).map(Routine::new).collect()
});

/// Finds a function by OID.
pub(crate) fn routine_by_oid(oid: Oid) -> Option<&'static Routine> {
    ROUTINES.iter().find(|routine| routine.oid == oid)
}

/// Returns the functions with this name.
pub(crate) fn routines_named(name: &str) -> impl Iterator<Item = &'static Routine> {
    ROUTINES.iter().filter(move |routine| routine.name == name)
}

impl Routine {
    fn new(CatalogFunction { name, description, kind, entry }: CatalogFunction) -> Self {
        let type_oid = |name: &str| type_oid(name).expect("a test finds the types of all entries");
        let arguments = entry.arguments.split(',').filter(|name| !name.is_empty()).map(type_oid).collect();
        let kind = match kind {
            FunctionKind::Scalar => "f",
            FunctionKind::Aggregate => "a",
            FunctionKind::Window => "w",
        };
        let volatility = match entry.volatility {
            Volatility::Immutable => "i",
            Volatility::Stable => "s",
            Volatility::Volatile => "v",
        };
        let is_strict = entry.is_strict && kind != "a";
        let (oid, result, returns_set) = (Oid(entry.oid), type_oid(entry.result), entry.returns_set);
        Self { oid, name, arguments, result, returns_set, kind, volatility, is_strict, description }
    }
}

/// Returns the OID of a type by its name in `pg_type`.
fn type_oid(name: &str) -> Option<u32> {
    if let Some((oid, _)) = PSEUDO_TYPES.iter().find(|(_, pseudo)| *pseudo == name) {
        return Some(*oid);
    }
    if let Some(element) = name.strip_prefix('_') {
        return SqlType::scalars().find(|sql_type| sql_type.typname() == element).map(|sql_type| sql_type.array_oid());
    }
    SqlType::scalars().find(|sql_type| sql_type.typname() == name).map(|sql_type| sql_type.oid())
}
