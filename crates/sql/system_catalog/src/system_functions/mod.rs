//! Functions that read the statement's catalog and session, each declared by name, arity, result and a function of one
//! row.
//!
//! - `declaration.rs`: declarations; `call.rs`: arguments of a call and the DataFusion function,
//! - `names.rs`, `describe.rs`, `visibility.rs`, `privilege.rs`, `size.rs`: functions of catalog objects,
//! - `session.rs`, `server.rs`, `encoding.rs`: functions of the session and the server,
//! - `sequence.rs`, `sleep.rs`, `set_returning.rs`: functions with side effects or more than one result.

mod call;
mod declaration;
mod describe;
mod encoding;
mod names;
mod privilege;
mod sequence;
mod server;
mod session;
mod set_returning;
mod size;
mod sleep;
mod visibility;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;
use session_context::StatementContext;

use self::call::SystemFunction;
use self::declaration::FunctionDeclaration;
pub(crate) use self::names::{display_name, parse_object_name};
use super::definition::SystemTables;

/// Set-returning functions of PostgreSQL, which are scalar functions here that return the rows as a list.
///
/// Names with one line of documentation.
const SET_RETURNING: &[(&str, &str)] = &[
    ("generate_series", "values of a series"),
    ("generate_subscripts", "subscripts of an array"),
    ("pg_get_keywords", "list of SQL keywords"),
    ("pg_options_to_table", "options of an object as name and value"),
    ("pg_partition_ancestors", "view ancestors of the partition"),
    ("pg_partition_tree", "view partition tree tables"),
    ("unnest", "expand array to set of rows"),
];

/// The sleep function, which is asynchronous and therefore not declared as a function of one row.
const SLEEP: &str = "pg_sleep";

/// Functions that are not declared as functions of one row, with one line of documentation.
const OTHERS: &[(&str, &str)] =
    &[(SLEEP, "sleep for the specified time in seconds"), (sequence::NEXTVAL, "sequence next value")];

/// Function for readers: its name, its number of arguments, its volatility and one line of documentation.
#[cfg(test)]
pub(super) struct DocumentedFunction {
    pub(super) name: &'static str,
    pub(super) arity: std::ops::RangeInclusive<usize>,
    pub(super) result: &'static str,
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
            volatility: declaration.volatility,
            description: declaration.description,
        })
        .collect();
    all.sort_unstable_by_key(|function| function.name);
    all
}

/// Returns the functions that are not declared as functions of one row: names and documentation.
pub(super) fn undeclared_documentation() -> impl Iterator<Item = (&'static str, &'static str)> {
    SET_RETURNING.iter().chain(OTHERS).copied()
}

/// Returns the description of the function of a name.
pub(super) fn description(name: &str) -> Option<&'static str> {
    let declared = BY_NAME.get(name).map(|declaration| declaration.description);
    declared.or_else(|| undeclared_documentation().find(|(other, _)| *other == name).map(|(_, line)| line))
}

/// Whether it is one of these functions other than `pg_sleep`, which are bound to one statement and must be looked up
/// again by name for another.
pub fn is_statement_bound(function: &ScalarUDF) -> bool {
    let inner = function.inner();
    inner.downcast_ref::<SystemFunction>().is_some() || inner.downcast_ref::<sequence::Nextval>().is_some()
}

/// Binds every declared function to a statement.
pub(super) fn bind_all(context: &Arc<StatementContext>, system: &'static SystemTables) -> Vec<Arc<ScalarUDF>> {
    BY_NAME.values().map(|declaration| bind(declaration, context, system)).collect()
}

/// Binds the function of a name to a statement.
pub(super) fn bind_by_name(
    name: &str,
    context: &Arc<StatementContext>,
    system: &'static SystemTables,
) -> Option<Arc<ScalarUDF>> {
    if name == SLEEP {
        return Some(sleep::pg_sleep(&context.clock));
    }
    if name == sequence::NEXTVAL {
        return Some(sequence::Nextval::udf(context, system));
    }
    BY_NAME.get(name).map(|declaration| bind(declaration, context, system))
}

/// Whether there is a function of a name.
pub(super) fn exists(name: &str) -> bool {
    description(name).is_some()
}

fn bind(
    declaration: &'static FunctionDeclaration,
    context: &Arc<StatementContext>,
    system: &'static SystemTables,
) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(SystemFunction::new(declaration, context, system)))
}

static BY_NAME: LazyLock<HashMap<&'static str, &'static FunctionDeclaration>> = LazyLock::new(|| {
    [
        session::FUNCTIONS,
        server::FUNCTIONS,
        names::FUNCTIONS,
        describe::FUNCTIONS,
        visibility::FUNCTIONS,
        privilege::FUNCTIONS,
        size::FUNCTIONS,
        encoding::FUNCTIONS,
        set_returning::FUNCTIONS,
        sequence::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
    .map(|declaration| (declaration.name, declaration))
    .collect()
});
