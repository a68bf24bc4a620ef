//! System catalog: the tables and functions that clients use for introspection, in `pg_catalog`, `information_schema`
//! and Kiln's own `sys`.
//!
//! Every table is declared in one place, as a `table_definition::TableDefinition`: a name, its columns as text, and a function
//! that computes its rows from a statement's snapshot. Nothing is stored or copied from a PostgreSQL installation:
//! tables of features that Kiln does not have are empty. Object identifiers (OIDs) are those of the catalog and
//! therefore stable; a key constraint appears as an index with the constraint's OID.
//!
//! Does no I/O: all data comes from the statement's context.
//!
//! Reading order:
//!
//! - `table_definition.rs`: declarations of tables; `row_source.rs`: the data that rows are computed from; `row_builder.rs`, `system_table.rs`:
//!   rows as Arrow batches and DataFusion tables,
//! - `pg_catalog/`, `information_schema/`, `sys/`: the tables; `system_table_registry.rs`: the list of all,
//! - `system_functions/`: functions that read the catalog or the session,
//! - `sql_text.rs`: names, constraints and indexes as SQL text; `view_definition.rs`: `pg_get_viewdef`; `format_type.rs`:
//!   `format_type`; `sequence_default.rs`: sequences in DEFAULTs.

mod format_type;
mod information_schema;
mod object_names;
mod pg_catalog;
mod relation_lookup;
mod row_builder;
mod row_source;
mod sequence_default;
mod sequence_table;
mod sql_text;
mod sys;
mod system_functions;
mod system_table;
mod system_table_registry;
mod table_definition;
mod view_definition;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::Expr;
use session_context::{EvaluationContext, StatementContext};
use types::{Oid, SqlResult, SqlType};

pub use self::object_names::CatalogNames;
use self::row_source::VisibleRelations;
pub use self::sequence_default::nextval_default;
pub use self::sequence_table::{SEQUENCE_COLUMNS, sequence_table};
pub use self::sql_text::{quote_ident, quote_literal};
pub use self::system_functions::is_statement_bound;
use self::system_table::SystemTable;
use self::system_table_registry::SYSTEM_TABLES;
pub use self::table_definition::TABLEOID;

#[cfg(test)]
mod tests;

/// Schemas whose relations are defined by this crate, not stored in the catalog.
pub const SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "sys"];

/// Returns the system table `schema.name` with the rows that `context`'s statement sees.
#[must_use]
pub fn table(schema: &str, name: &str, context: &Arc<StatementContext>) -> Option<Arc<dyn TableProvider>> {
    let table = SystemTable::find(schema, name, context, &SYSTEM_TABLES)?;
    Some(Arc::new(table))
}

/// Whether a table is a system table, whose rows are computed by this crate.
#[must_use]
pub fn is_system_table(table: &dyn TableProvider) -> bool {
    table.downcast_ref::<SystemTable>().is_some()
}

/// Whether there is a system table `schema.name`.
#[must_use]
pub fn has_table(schema: &str, name: &str) -> bool {
    SYSTEM_TABLES.find(schema, name).is_some()
}

/// Returns the number of columns that `*` does not include, which are the last ones of the system table `schema.name`.
#[must_use]
pub fn hidden_column_count(schema: &str, name: &str) -> usize {
    SYSTEM_TABLES.find(schema, name).map_or(0, |table| table.hidden_column_count())
}

/// Returns the functions whose results depend on `context`: names of objects, definitions, sizes, privileges, the
/// session.
#[must_use]
pub fn functions(context: &Arc<StatementContext>) -> Vec<Arc<ScalarUDF>> {
    system_functions::bind_all(context, &SYSTEM_TABLES)
}

/// Returns one of the [`functions()`] by its name, in lower case and without schema.
#[must_use]
pub fn function(name: &str, context: &Arc<StatementContext>) -> Option<Arc<ScalarUDF>> {
    system_functions::bind_by_name(name, context, &SYSTEM_TABLES)
}

/// Returns the names of the objects that the statement sees, along its search path.
#[must_use]
pub fn catalog_names(context: &Arc<StatementContext>) -> CatalogNames {
    CatalogNames::new(Arc::clone(context), &SYSTEM_TABLES)
}

/// Returns the session data that functions and casts of a statement read, with the names of the objects that it sees.
#[must_use]
pub fn session(context: &Arc<StatementContext>) -> EvaluationContext {
    object_names::session(context, &SYSTEM_TABLES)
}

/// Returns the text form of a value of a `reg…` type: the object's name, `-` for OID 0, and the number of an unknown
/// object.
#[must_use]
pub fn display_name(sql_type: &SqlType, oid: u32, context: &StatementContext) -> String {
    system_functions::display_name(sql_type, oid, VisibleRelations { context, system_tables: &SYSTEM_TABLES })
}

/// Replaces the names of sequences in a DEFAULT by their OIDs; returns the DEFAULT and these OIDs.
///
/// # Errors
/// `42P01` for a sequence that does not exist.
pub fn resolve_default(context: &StatementContext, default: &Expr) -> SqlResult<(Expr, Vec<Oid>)> {
    sequence_default::resolve_default(VisibleRelations { context, system_tables: &SYSTEM_TABLES }, default)
}
