//! Carried columns: values that functionally depend on a group's key, taken from the group's first row.

use crate::vector::{bytes_copied, concat};
use crate::{Column, Form, Result};

/// Carried column: one value for each group, in the order of the groups.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pieces: Vec<Column>,
    bytes: usize,
}

impl Carried {
    /// Appends the values of the rows that start the next groups.
    pub(super) fn add(&mut self, column: &Column, rows: &[u32]) -> Result<()> {
        let piece = if rows.len() == column.rows() { column.clone() } else { column.take(rows)? };
        self.bytes += bytes_copied(&piece);
        self.pieces.push(piece);
        Ok(())
    }

    /// Appends the values of some groups of `other`, which are the next groups here.
    pub(super) fn merge(&mut self, other: &Self, groups: &[u32]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.add(&other.column()?.take(groups)?, &(0..).take(groups.len()).collect::<Vec<u32>>())
    }

    /// Returns the values of all groups.
    pub(super) fn column(&self) -> Result<Column> {
        let form = self.pieces.first().map_or(Form::Ints, Form::of);
        concat(self.pieces.clone(), form)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
