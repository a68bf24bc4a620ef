//! PostgreSQL's default names for constraints and sequences.

use catalog::{CatalogState, Table};

use super::name_resolution;

/// Maximum length of a name in bytes, as in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

/// Returns PostgreSQL's default name for a constraint: `table_column_label`, with a number if that name exists.
pub(super) fn choose_name(
    state: &CatalogState,
    table: &Table,
    column: Option<&str>,
    label: &str,
    is_key: bool,
) -> String {
    let is_taken = |name: &str| {
        table.constraints.iter().any(|constraint| constraint.name == name)
            || table.indexes.iter().any(|index| index.name == name)
            || (is_key && is_relation(state, table, name))
            || state
                .tables()
                .filter(|other| other.schema == table.schema && other.oid != table.oid)
                .any(|other| other.constraints.iter().any(|constraint| constraint.name == name))
    };
    let labels = std::iter::once(label.to_owned()).chain((1..).map(|number| format!("{label}{number}")));
    let mut names = labels.map(|label| join_truncated(&table.name, column, &label));
    names.find(|name| !is_taken(name)).expect("the numbered names are unlimited, so one of them is free")
}

/// Returns PostgreSQL's default name for a column's sequence; `taken` are the names of sequences created earlier by the
/// same statement.
pub(super) fn choose_sequence_name(state: &CatalogState, table: &Table, column: &str, taken: &[&str]) -> String {
    let is_taken = |name: &str| is_relation(state, table, name) || taken.contains(&name);
    let labels = std::iter::once("seq".to_owned()).chain((1..).map(|number| format!("seq{number}")));
    let mut names = labels.map(|label| join_truncated(&table.name, Some(column), &label));
    names.find(|name| !is_taken(name)).expect("the numbered names are unlimited, so one of them is free")
}

/// Joins the parts by underscores; the longer of table and column is truncated until the name fits.
fn join_truncated(table: &str, column: Option<&str>, label: &str) -> String {
    let mut table = table.to_owned();
    let mut column = column.map(str::to_owned);
    let length = |table: &String, column: &Option<String>| {
        table.len() + column.as_ref().map_or(0, |column| column.len() + 1) + 1 + label.len()
    };
    while length(&table, &column) > NAME_BYTES_MAX {
        match &mut column {
            Some(column) if column.len() >= table.len() => column.pop(),
            _ => table.pop(),
        };
    }
    match column {
        Some(column) => format!("{table}_{column}_{label}"),
        None => format!("{table}_{label}"),
    }
}

/// Whether a relation of the table's schema, or the table itself, has the name; keys share the namespace, as indexes.
pub(super) fn is_relation(state: &CatalogState, table: &Table, name: &str) -> bool {
    let schema = state.schema(table.schema).map_or("", |schema| schema.name.as_str());
    name == table.name || name_resolution::find_relation_in(state, schema, name).is_some()
}
