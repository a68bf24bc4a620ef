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
use session_context::StatementContext;

pub use self::definition::TABLEOID;
use self::definition::{Definition, RELATIONS};
pub use self::object_names::{CatalogNames, session};
pub use self::sequence_default::{next_of, settled_default};
pub use self::sequence_table::{SEQUENCE_COLUMNS, sequence_table};
pub use self::system_functions::{is_of_statement, show_name};
use self::table::SystemTable;
pub use self::text::{quote_ident, quote_literal};

#[cfg(test)]
mod tests;

/// The schemas whose relations are this crate's, not the catalog's.
pub const SCHEMAS: [&str; 3] = ["pg_catalog", "information_schema", "sys"];

/// The system table `schema.name` as `context`'s statement sees it.
#[must_use]
pub fn table(schema: &str, name: &str, context: &Arc<StatementContext>) -> Option<Arc<dyn TableProvider>> {
    let relation = RELATIONS.get(&(schema, name))?;
    Some(Arc::new(SystemTable::new(Arc::clone(relation), Arc::clone(context))))
}

/// Whether a table's rows are made of what the server knows.
#[must_use]
pub fn is_system_table(table: &dyn TableProvider) -> bool {
    table.downcast_ref::<SystemTable>().is_some()
}

/// Whether there is a system table `schema.name`.
#[must_use]
pub fn has_table(schema: &str, name: &str) -> bool {
    RELATIONS.contains_key(&(schema, name))
}

/// The functions that answer from `context`: names of things, their definitions, sizes and privileges, the session itself.
#[must_use]
pub fn functions(context: &Arc<StatementContext>) -> Vec<Arc<ScalarUDF>> {
    system_functions::all(context)
}

/// The function of that name, lower case and without its schema, as [`functions()`] has it.
#[must_use]
pub fn function(name: &str, context: &Arc<StatementContext>) -> Option<Arc<ScalarUDF>> {
    system_functions::named(name, context)
}

fn definitions() -> impl Iterator<Item = &'static Definition> {
    pg_catalog::definitions().chain(information_schema::definitions()).chain(sys::definitions())
}
