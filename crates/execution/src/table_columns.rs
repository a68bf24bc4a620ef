//! A table's columns as its shards know them.

use catalog::{Column, Table};
use shards::ColumnDef;

/// All columns, in the table's order.
pub(crate) fn column_defs(table: &Table) -> Vec<ColumnDef> {
    table.columns.iter().map(column_def).collect()
}

/// One column.
pub(crate) fn column_def(column: &Column) -> ColumnDef {
    ColumnDef {
        id: column.id,
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        nullable: !column.not_null,
        missing: column.missing.clone(),
    }
}
