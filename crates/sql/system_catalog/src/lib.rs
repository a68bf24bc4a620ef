//! The system tables and functions clients introspect with: `pg_catalog`, `information_schema` and Kiln's own `sys`.
//!
//! Every table is declared once (`definition.rs`): a name, its columns as text, and a function from a statement's
//! snapshot to rows. Nothing is stored and nothing is a copy of a PostgreSQL installation: what Kiln does not have has
//! no rows. Object numbers are the catalog's own and so are stable; a declared key is shown as an index with its
//! constraint's number.
//!
//! Never does I/O: what it shows is what the statement's context has.
//!
//! Start at `definition.rs`, then `source.rs` (what the rows come from), then any file of `pg_catalog/`. Functions are in `system_functions/`;
//! `view_definition.rs` is `pg_get_viewdef`, `text.rs` writes names, constraints and indexes, `type_name.rs` is `format_type`.

mod definition;
mod information_schema;
mod object_names;
mod pg_catalog;
mod registry;
mod relation_names;
mod rows;
mod sequence_default;
mod sequence_table;
mod source;
mod sys;
mod system_functions;
mod table;
mod text;
mod type_name;
mod view_definition;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::logical_expr::ScalarUDF;
use datafusion::sql::sqlparser::ast::Expr;
use session_context::{Session, StatementContext};
use types::{Oid, SqlResult, SqlType};

pub use self::definition::TABLEOID;
pub use self::object_names::CatalogNames;
use self::registry::SYSTEM_TABLES;
pub use self::sequence_default::next_of;
pub use self::sequence_table::{SEQUENCE_COLUMNS, sequence_table};
use self::source::Relations;
pub use self::system_functions::is_of_statement;
use self::table::SystemTable;
pub use self::text::{quote_ident, quote_literal};

#[cfg(test)]
mod tests;

/// The schemas whose relations are this crate's, not the catalog's.
pub const SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "sys"];

/// The system table `schema.name` as `context`'s statement sees it.
#[must_use]
pub fn table(schema: &str, name: &str, context: &Arc<StatementContext>) -> Option<Arc<dyn TableProvider>> {
    let table = SystemTable::named(schema, name, context, &SYSTEM_TABLES)?;
    Some(Arc::new(table))
}

/// Whether a table's rows are made of what the server knows.
#[must_use]
pub fn is_system_table(table: &dyn TableProvider) -> bool {
    table.downcast_ref::<SystemTable>().is_some()
}

/// Whether there is a system table `schema.name`.
#[must_use]
pub fn has_table(schema: &str, name: &str) -> bool {
    SYSTEM_TABLES.named(schema, name).is_some()
}

/// The functions that answer from `context`: names of things, their definitions, sizes and privileges, the session itself.
#[must_use]
pub fn functions(context: &Arc<StatementContext>) -> Vec<Arc<ScalarUDF>> {
    system_functions::all(context, &SYSTEM_TABLES)
}

/// The function of that name, lower case and without its schema, as [`functions()`] has it.
#[must_use]
pub fn function(name: &str, context: &Arc<StatementContext>) -> Option<Arc<ScalarUDF>> {
    system_functions::named(name, context, &SYSTEM_TABLES)
}

/// The names of the objects that the statement sees, on its search path.
#[must_use]
pub fn names(context: &Arc<StatementContext>) -> CatalogNames {
    CatalogNames::new(Arc::clone(context), &SYSTEM_TABLES)
}

/// The facts of a statement that its functions and casts read, with the names of the objects that it sees.
#[must_use]
pub fn session(context: &Arc<StatementContext>) -> Session {
    object_names::session(context, &SYSTEM_TABLES)
}

/// The text that a value of one of the `reg…` types prints: the name, `-` for none, the bare number of what is gone.
#[must_use]
pub fn show_name(sql_type: &SqlType, oid: u32, context: &StatementContext) -> String {
    system_functions::show_name(sql_type, oid, Relations { context, system: &SYSTEM_TABLES })
}

/// A DEFAULT with its sequences by their ids, and those ids.
///
/// # Errors
/// `42P01` for a sequence that does not exist.
pub fn settled_default(context: &StatementContext, default: &Expr) -> SqlResult<(Expr, Vec<Oid>)> {
    sequence_default::settled_default(Relations { context, system: &SYSTEM_TABLES }, default)
}
