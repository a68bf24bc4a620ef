//! The value of an expression over a batch.

use std::sync::Arc;

use crate::{Bits, Column, Result};

/// A computed column, or one value for all rows.
#[derive(Debug, Clone)]
pub(crate) struct Computed {
    pub(crate) column: Column,
    /// The column has one row, which stands for all.
    pub(crate) is_scalar: bool,
}

impl Computed {
    pub(super) fn rows(column: Column) -> Self {
        Self { column, is_scalar: false }
    }

    /// A column of as many rows.
    pub(crate) fn into_column(self, rows: usize) -> Result<Column> {
        if self.is_scalar { self.column.repeated(rows) } else { Ok(self.column) }
    }

    /// The validity of the computed rows; a NULL constant's as rows.
    pub(super) fn validity(&self, rows: usize) -> Option<Arc<Bits>> {
        let bits = self.column.validity.as_ref()?;
        match (self.is_scalar, bits.get_or_false(0)) {
            (false, _) => Some(Arc::clone(bits)),
            (true, true) => None,
            (true, false) => Some(Arc::new(Bits::all(rows, false))),
        }
    }
}

/// The rows where neither side is NULL.
pub(super) fn both_valid(left: &Computed, right: &Computed, rows: usize) -> Option<Arc<Bits>> {
    match (left.validity(rows), right.validity(rows)) {
        (Some(left), Some(right)) => Some(Arc::new(left.and(&right))),
        (left, right) => left.or(right),
    }
}
