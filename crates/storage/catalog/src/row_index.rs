//! What the fresh rows of a table are found by: its keys and its indexes.

use std::borrow::Cow;
use std::sync::Arc;

use rowstore::{IndexEntry, OwnRows, Row, Tuple, Value, encode_key};
use types::{ColumnId, Oid, RowId};

use crate::{ConstraintKind, Error, ObjectKind, Result, Table};

/// An index of a table, made by CREATE INDEX or by a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowIndex<'a> {
    /// Of the index or the constraint.
    pub oid: Oid,
    pub columns: &'a [ColumnId],
    /// No two rows may be equal in it, unless NULL is among their values.
    pub unique: bool,
}

impl Table {
    /// The indexes that fresh rows are kept in: the primary key, every enforced key, and what CREATE INDEX made.
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

    /// The row's entry in each index.
    ///
    /// # Errors
    /// [`Error::Damaged`] where a column's value for older rows is none of its type.
    pub fn index_entries(&self, row: RowId, tuple: &Tuple) -> Result<Arc<[(Oid, IndexEntry)]>> {
        self.row_indexes()
            .map(|index| {
                let (key, _) = self.index_key(index.columns, tuple)?;
                Ok((index.oid, IndexEntry::new(&key, row)))
            })
            .collect()
    }

    /// `own` with the entries of the table's indexes: some may have come or gone since its rows were written.
    ///
    /// # Errors
    /// As [`Table::index_entries`].
    pub fn indexed<'a>(&self, own: &'a OwnRows) -> Result<Cow<'a, OwnRows>> {
        let is_indexed =
            |row: &Row| row.keys.iter().map(|(index, _)| *index).eq(self.row_indexes().map(|index| index.oid));
        if own.layer.rows().all(|(_, row)| is_indexed(row)) {
            return Ok(Cow::Borrowed(own));
        }
        let layer = own.layer.reindexed(|id, row| self.index_entries(id, &row.tuple))?;
        Ok(Cow::Owned(OwnRows { layer, deleted: own.deleted.clone() }))
    }

    /// The row's values in these columns as a key, and whether one of them is NULL.
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
                None => self.missing_key(*column, &mut key)?,
            };
        }
        Ok((key, has_null))
    }

    /// The key of what rows older than the column have in it.
    fn missing_key(&self, column: ColumnId, key: &mut Vec<u8>) -> Result<bool> {
        let known = self.column(column).filter(|column| column.missing.is_some());
        let Some(column) = known else { return Ok(encode_key([Value::Null], key)) };
        let damaged = |reason: String| Error::Damaged { kind: ObjectKind::Table, oid: self.oid, reason };
        let missing = shards::missing_value(&column.sql_type, column.missing.as_deref());
        let missing = missing.map_err(|error| damaged(error.to_string()))?;
        let value = Value::of(&*missing, 0).map_err(|error| damaged(error.to_string()))?;
        Ok(encode_key([value], key))
    }
}
