//! Indexes of fresh rows: keys, and indexes made by CREATE INDEX.

use std::borrow::Cow;
use std::sync::Arc;

use rowstore::{IndexEntry, RowVersion, Tuple, UncommittedRows, Value, encode_key};
use types::{ColumnId, Oid, RowId};

use crate::{ConstraintKind, Error, ObjectKind, Result, Table};

/// Index of a table, made by CREATE INDEX or for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowIndex<'a> {
    /// Id of the index or the constraint.
    pub oid: Oid,
    pub columns: &'a [ColumnId],
    /// True if no two rows may have equal values, unless one of them is NULL.
    pub unique: bool,
}

impl Table {
    /// Iterates over the indexes that fresh rows are in: primary key, enforced unique keys, and those made by CREATE
    /// INDEX.
    pub fn row_indexes(&self) -> impl Iterator<Item = RowIndex<'_>> {
        let keys = self.constraints.iter().filter_map(|constraint| match &constraint.kind {
            ConstraintKind::PrimaryKey { columns } => {
                Some(RowIndex { oid: constraint.oid, columns, unique: constraint.enforced })
            }
            ConstraintKind::Unique { columns } if constraint.enforced => {
                Some(RowIndex { oid: constraint.oid, columns, unique: true })
            }
            _ => None,
        });
        let indexes =
            self.indexes.iter().map(|index| RowIndex { oid: index.oid, columns: &index.columns, unique: index.unique });
        keys.chain(indexes)
    }

    /// Returns the row's entry in each index.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the value that older rows have in a column is not of its type.
    pub fn index_entries(&self, row: RowId, tuple: &Tuple) -> Result<Arc<[(Oid, IndexEntry)]>> {
        self.row_indexes()
            .map(|index| {
                let (key, _) = self.index_key(index.columns, tuple)?;
                Ok((index.oid, IndexEntry::new(&key, row)))
            })
            .collect()
    }

    /// Returns `own` with entries for exactly the table's present indexes, which may have changed since its rows were
    /// written.
    ///
    /// # Errors
    /// As [`Table::index_entries`].
    pub fn with_current_indexes<'a>(&self, own: &'a UncommittedRows) -> Result<Cow<'a, UncommittedRows>> {
        let is_indexed = |row: &RowVersion| {
            row.index_entries.iter().map(|(index, _)| *index).eq(self.row_indexes().map(|index| index.oid))
        };
        if own.layer.rows().all(|(_, row)| is_indexed(row)) {
            return Ok(Cow::Borrowed(own));
        }
        let layer = own.layer.reindexed(|id, row| self.index_entries(id, &row.tuple))?;
        Ok(Cow::Owned(UncommittedRows { layer, deleted_in_shards: own.deleted_in_shards.clone() }))
    }

    /// Returns the row's values in these columns as an encoded key, and whether one of them is NULL.
    ///
    /// # Errors
    /// As [`Table::index_entries`].
    pub fn index_key(&self, columns: &[ColumnId], tuple: &Tuple) -> Result<(Vec<u8>, bool)> {
        let reader = tuple.reader();
        let mut key = Vec::with_capacity(columns.len() * 12 + 8);
        let mut has_null = false;
        for column in columns {
            has_null |= match reader.get(*column) {
                Some(value) => encode_key([value], &mut key),
                None => self.encode_missing_key(*column, &mut key)?,
            };
        }
        Ok((key, has_null))
    }

    /// Appends the key of the value that rows older than the column have in it.
    fn encode_missing_key(&self, column: ColumnId, key: &mut Vec<u8>) -> Result<bool> {
        let known = self.column(column).filter(|column| column.missing.is_some());
        let Some(column) = known else { return Ok(encode_key([Value::Null], key)) };
        let damaged = |reason: String| Error::Damaged { kind: ObjectKind::Table, oid: self.oid, reason };
        let missing = shards::missing_value(&column.sql_type, column.missing.as_deref());
        let missing = missing.map_err(|error| damaged(error.to_string()))?;
        let value = Value::from_array(&*missing, 0).map_err(|error| damaged(error.to_string()))?;
        Ok(encode_key([value], key))
    }
}
