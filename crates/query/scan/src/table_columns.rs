//! Columns of tables as shards describe them.

use arrow::array::RecordBatch;
use catalog::{Column, Distribution, Table};
use plan::{ROW_ID, ROW_POSITION};
use shards::{BucketKeys, ColumnDef, ORDINAL_COLUMN, ROW_ID_COLUMN};
use storage_error::from_shards;
use types::{ColumnId, SqlResult, SqlType};

use crate::column_conversion::convert_to_column_type;

/// Describes all columns, in the order of the table.
#[must_use]
pub fn column_defs(table: &Table) -> Vec<ColumnDef> {
    table.columns.iter().map(column_def).collect()
}

/// Describes one column.
pub fn column_def(column: &Column) -> ColumnDef {
    ColumnDef {
        id: column.id,
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        nullable: !column.not_null,
        missing: column.missing.clone(),
    }
}

/// Returns the two columns that identify each row, its id and its location, as statements that change rows read them.
#[must_use]
pub fn row_locator_columns() -> [ColumnDef; 2] {
    [(ROW_ID_COLUMN, ROW_ID), (ORDINAL_COLUMN, ROW_POSITION)].map(|(id, name)| ColumnDef {
        id,
        name: name.to_owned(),
        sql_type: SqlType::Int8,
        nullable: false,
        missing: None,
    })
}

/// Returns the columns and the hash that assign a table's rows to buckets; `None` if the table is not distributed on
/// columns, or if their types have no hash.
pub fn bucket_keys(table: &Table) -> Option<BucketKeys> {
    let Distribution::On(columns) = &table.distribution else { return None };
    let column = |id: ColumnId| table.columns.iter().find(|column| column.id == id);
    let columns = columns.iter().map(|id| column(*id).map(|column| (*id, &column.sql_type)));
    BucketKeys::new(columns.collect::<Option<Vec<_>>>()?)
}

/// Assignment of a table's rows to buckets.
#[derive(Debug, Clone)]
pub struct BucketAssigner {
    pub keys: BucketKeys,
    /// Positions and types of the key columns.
    columns: Vec<(usize, SqlType)>,
}

impl BucketAssigner {
    /// Returns the assignment for a table; `None` if it is not distributed on columns that have a hash.
    pub fn try_new(table: &Table) -> Option<Self> {
        let keys = bucket_keys(table)?;
        let column = |id: ColumnId| table.columns.iter().enumerate().find(|(_, column)| column.id == id);
        let columns = keys.columns().filter_map(|id| column(id).map(|(at, column)| (at, column.sql_type.clone())));
        Some(Self { columns: columns.collect(), keys })
    }

    /// Computes the bucket of each row of a batch that begins with the table's columns.
    ///
    /// # Errors
    /// A value that does not fit its column's type.
    pub fn assign_buckets(&self, batch: &RecordBatch) -> SqlResult<Vec<u8>> {
        let values = self.columns.iter().map(|(at, sql_type)| convert_to_column_type(batch.column(*at), sql_type));
        self.keys.buckets(&values.collect::<SqlResult<Vec<_>>>()?).map_err(from_shards)
    }
}
