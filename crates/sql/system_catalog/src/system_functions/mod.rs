//! Functions that read the statement's catalog and session, each declared by name, arity, result and a function of one
//! row.
//!
//! - `function_declaration.rs`: declarations; `scalar_function.rs`: arguments of a call and the DataFusion function,
//! - `reg_type_conversion.rs`, `object_descriptions.rs`, `search_path_visibility.rs`, `privilege.rs`, `relation_size.rs`: functions of catalog objects,
//! - `session.rs`, `server.rs`, `character_encoding.rs`: functions of the session and the server,
//! - `sequence.rs`, `sleep.rs`, `set_returning.rs`: functions with side effects or more than one result.

mod character_encoding;
mod function_declaration;
mod object_descriptions;
mod privilege;
mod reg_type_conversion;
mod relation_size;
mod scalar_function;
mod search_path_visibility;
mod sequence;
mod server;
mod session;
mod set_returning;
mod sleep;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use functions::{CatalogEntry, CatalogFunction, FunctionKind, catalog_entry};
use session_context::StatementContext;

use self::function_declaration::FunctionDeclaration;
pub(crate) use self::reg_type_conversion::{display_name, parse_object_name};
use self::scalar_function::SystemFunction;
use super::table_definition::SystemTables;

/// Function that is not declared as a function of one row.
struct UndeclaredFunction {
    name: &'static str,
    /// One line of documentation, in PostgreSQL's words where it has the function.
    description: &'static str,
    /// PostgreSQL's functions of this name that it implements.
    catalog: &'static [CatalogEntry],
}

/// The sleep function, which is asynchronous.
const SLEEP: &str = "pg_sleep";

/// Set-returning functions of PostgreSQL, which are scalar functions here that return the rows as a list, and functions
/// that wait.
const UNDECLARED_FUNCTIONS: &[UndeclaredFunction] = &[
    undeclared(
        "generate_series",
        "values of a series",
        &[
            catalog_entry(938, "timestamp,timestamp,interval", "timestamp").set_returning(),
            catalog_entry(939, "timestamptz,timestamptz,interval", "timestamptz").stable().set_returning(),
            catalog_entry(1066, "int4,int4,int4", "int4").set_returning(),
            catalog_entry(1067, "int4,int4", "int4").set_returning(),
            catalog_entry(1068, "int8,int8,int8", "int8").set_returning(),
            catalog_entry(1069, "int8,int8", "int8").set_returning(),
            catalog_entry(3259, "numeric,numeric,numeric", "numeric").set_returning(),
            catalog_entry(3260, "numeric,numeric", "numeric").set_returning(),
        ],
    ),
    undeclared(
        "generate_subscripts",
        "subscripts of an array",
        &[
            catalog_entry(1191, "anyarray,int4,bool", "int4").set_returning(),
            catalog_entry(1192, "anyarray,int4", "int4").set_returning(),
        ],
    ),
    undeclared(
        "pg_get_keywords",
        "list of SQL keywords",
        &[catalog_entry(1686, "", "record").stable().set_returning()],
    ),
    undeclared("pg_options_to_table", "options of an object as name and value", &[]),
    undeclared(
        "pg_partition_ancestors",
        "view ancestors of the partition",
        &[catalog_entry(3425, "regclass", "regclass").volatile().set_returning()],
    ),
    undeclared("pg_partition_tree", "view partition tree tables", &[]),
    undeclared(
        "unnest",
        "expand array to set of rows",
        &[catalog_entry(2331, "anyarray", "anyelement").set_returning()],
    ),
    undeclared(SLEEP, "sleep for the specified time in seconds", &[catalog_entry(2626, "float8", "void").volatile()]),
    undeclared(sequence::NEXTVAL, "sequence next value", &[catalog_entry(1574, "regclass", "int8").volatile()]),
];

const fn undeclared(
    name: &'static str,
    description: &'static str,
    catalog: &'static [CatalogEntry],
) -> UndeclaredFunction {
    UndeclaredFunction { name, description, catalog }
}

/// Returns the catalog entries of all system functions.
pub(super) fn catalog_functions() -> impl Iterator<Item = CatalogFunction> {
    let declared = DECLARATIONS.iter().copied().flatten().map(|it| (it.name, it.description, it.catalog));
    let undeclared = UNDECLARED_FUNCTIONS.iter().map(|it| (it.name, it.description, it.catalog));
    declared.chain(undeclared).flat_map(|(name, description, entries)| {
        let kind = FunctionKind::Scalar;
        entries.iter().map(move |entry| CatalogFunction { name, description, kind, entry })
    })
}

/// Function for readers, with one line of documentation.
#[cfg(test)]
pub(super) struct DocumentedFunction {
    pub(super) name: &'static str,
    pub(super) arity: std::ops::RangeInclusive<usize>,
    pub(super) result: &'static str,
    /// PostgreSQL's functions of this name that it implements.
    pub(super) catalog: &'static [CatalogEntry],
    pub(super) volatility: datafusion::logical_expr::Volatility,
    pub(super) description: &'static str,
}

/// Returns the declared functions by name, without those that only plans call.
#[cfg(test)]
pub(super) fn documentation() -> Vec<DocumentedFunction> {
    let is_internal = |name: &str| set_returning::FUNCTIONS.iter().any(|internal| internal.name == name);
    let mut all: Vec<DocumentedFunction> = BY_NAME
        .values()
        .filter(|declaration| !is_internal(declaration.name))
        .map(|declaration| DocumentedFunction {
            name: declaration.name,
            arity: declaration.arity.clone(),
            result: declaration.result,
            catalog: declaration.catalog,
            volatility: declaration.volatility,
            description: declaration.description,
        })
        .collect();
    all.sort_unstable_by_key(|function| function.name);
    all
}

/// Returns the functions that are not declared as functions of one row: names, catalog entries and documentation.
#[cfg(test)]
pub(super) fn undeclared_documentation() -> impl Iterator<Item = (&'static str, &'static [CatalogEntry], &'static str)>
{
    UNDECLARED_FUNCTIONS.iter().map(|it| (it.name, it.catalog, it.description))
}

/// Whether it is one of these functions other than `pg_sleep`, which are bound to one statement and must be looked up
/// again by name for another.
pub fn is_statement_bound(function: &ScalarUDF) -> bool {
    let inner = function.inner();
    inner.downcast_ref::<SystemFunction>().is_some() || inner.downcast_ref::<sequence::Nextval>().is_some()
}

/// Binds every declared function to a statement.
pub(super) fn bind_all(context: &Arc<StatementContext>, system_tables: &'static SystemTables) -> Vec<Arc<ScalarUDF>> {
    BY_NAME.values().map(|declaration| bind(declaration, context, system_tables)).collect()
}

/// Binds the function of a name to a statement.
pub(super) fn bind_by_name(
    name: &str,
    context: &Arc<StatementContext>,
    system_tables: &'static SystemTables,
) -> Option<Arc<ScalarUDF>> {
    if name == SLEEP {
        return Some(sleep::pg_sleep(&context.clock));
    }
    if name == sequence::NEXTVAL {
        return Some(sequence::Nextval::udf(context, system_tables));
    }
    BY_NAME.get(name).map(|declaration| bind(declaration, context, system_tables))
}

fn bind(
    declaration: &'static FunctionDeclaration,
    context: &Arc<StatementContext>,
    system_tables: &'static SystemTables,
) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(SystemFunction::new(declaration, context, system_tables)))
}

/// All functions of one row, by topic.
const DECLARATIONS: [&[FunctionDeclaration]; 10] = [
    session::FUNCTIONS,
    server::FUNCTIONS,
    reg_type_conversion::FUNCTIONS,
    object_descriptions::FUNCTIONS,
    search_path_visibility::FUNCTIONS,
    privilege::FUNCTIONS,
    relation_size::FUNCTIONS,
    character_encoding::FUNCTIONS,
    set_returning::FUNCTIONS,
    sequence::FUNCTIONS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static FunctionDeclaration>> =
    LazyLock::new(|| DECLARATIONS.into_iter().flatten().map(|declaration| (declaration.name, declaration)).collect());
