//! A table's columns as its shards know them.

use catalog::{Column, Table};
use planner::{PLACE, ROW_ID};
use shards::{ColumnDef, ORDINAL_COLUMN, ROW_ID_COLUMN};
use types::SqlType;

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

/// The columns that say which row each is and where, as a statement that changes rows reads them.
pub(crate) fn place_columns() -> [ColumnDef; 2] {
    [(ROW_ID_COLUMN, ROW_ID), (ORDINAL_COLUMN, PLACE)].map(|(id, name)| ColumnDef {
        id,
        name: name.to_owned(),
        sql_type: SqlType::Int8,
        nullable: false,
        missing: None,
    })
}
