//! Values that a group's key determines: those of its first row stand for all.

use crate::vector::{bytes_copied, concat};
use crate::{Column, Form, Result};

/// A value of each group, in the order of the groups.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pieces: Vec<Column>,
    bytes: usize,
}

impl Carried {
    /// Takes the values of rows that begin the next groups.
    pub(super) fn add(&mut self, column: &Column, rows: &[u32]) -> Result<()> {
        let piece = if rows.len() == column.rows() { column.clone() } else { column.take(rows)? };
        self.bytes += bytes_copied(&piece);
        self.pieces.push(piece);
        Ok(())
    }

    /// Takes another's values of these groups, which are the next.
    pub(super) fn merge(&mut self, other: &Self, groups: &[u32]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.add(&other.column()?.take(groups)?, &(0..).take(groups.len()).collect::<Vec<u32>>())
    }

    /// All values.
    pub(super) fn column(&self) -> Result<Column> {
        let form = self.pieces.first().map_or(Form::Ints, Form::of);
        concat(self.pieces.clone(), form)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
