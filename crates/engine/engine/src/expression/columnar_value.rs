//! Value of an expression over a batch.

use std::sync::Arc;

use crate::{Bitmap, Column, Result};

/// Computed column: one value per row, or a single value for all rows.
#[derive(Debug, Clone)]
pub(crate) struct ColumnarValue {
    pub(crate) column: Column,
    /// Whether the column has a single row that stands for all rows.
    pub(crate) is_scalar: bool,
}

impl ColumnarValue {
    /// Wraps a column with one value per row.
    pub(super) fn from_column(column: Column) -> Self {
        Self { column, is_scalar: false }
    }

    /// Returns a column of `rows` rows, repeating a scalar.
    pub(crate) fn into_column(self, rows: usize) -> Result<Column> {
        if self.is_scalar { self.column.repeat_scalar(rows) } else { Ok(self.column) }
    }

    /// Returns the validity bitmap of `rows` rows; a NULL scalar is expanded.
    pub(super) fn validity(&self, rows: usize) -> Option<Arc<Bitmap>> {
        let bits = self.column.validity.as_ref()?;
        match (self.is_scalar, bits.get_or_false(0)) {
            (false, _) => Some(Arc::clone(bits)),
            (true, true) => None,
            (true, false) => Some(Arc::new(Bitmap::filled(rows, false))),
        }
    }
}

/// Returns the bitmap of rows where neither side is NULL, or `None` if there is no NULL.
pub(super) fn validity_of_both(left: &ColumnarValue, right: &ColumnarValue, rows: usize) -> Option<Arc<Bitmap>> {
    match (left.validity(rows), right.validity(rows)) {
        (Some(left), Some(right)) => Some(Arc::new(left.and(&right))),
        (left, right) => left.or(right),
    }
}
