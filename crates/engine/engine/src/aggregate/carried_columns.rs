//! Carried columns: values that functionally depend on a group's key, taken from the group's first row.

use crate::vector::{concat, copied_bytes};
use crate::{Column, PhysicalType, Result};

/// Carried column: one value for each group, in the order of the groups.
#[derive(Debug, Default)]
pub(super) struct CarriedColumn {
    chunks: Vec<Column>,
    bytes: usize,
}

impl CarriedColumn {
    /// Appends the values of the rows that start the next groups.
    pub(super) fn append(&mut self, column: &Column, rows: &[u32]) -> Result<()> {
        let piece = if rows.len() == column.rows() { column.clone() } else { column.take(rows)? };
        self.bytes += copied_bytes(&piece);
        self.chunks.push(piece);
        Ok(())
    }

    /// Appends the values of some groups of `other`, which are the next groups here.
    pub(super) fn merge(&mut self, other: &Self, groups: &[u32]) -> Result<()> {
        if groups.is_empty() {
            return Ok(());
        }
        self.append(&other.concat()?.take(groups)?, &(0..).take(groups.len()).collect::<Vec<u32>>())
    }

    /// Returns the values of all groups.
    pub(super) fn concat(&self) -> Result<Column> {
        let form = self.chunks.first().map_or(PhysicalType::Ints, PhysicalType::from_column);
        concat(self.chunks.clone(), form)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
