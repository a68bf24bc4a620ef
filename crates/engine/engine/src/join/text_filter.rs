//! Runtime filter on a string join key, applied by scans to the dictionaries of their pages.

use std::sync::Arc;

use super::encoding::Remembered;
use super::{JoinTable, NO_WORD};
use crate::{Bits, Column, Result};

/// Runtime filter on a string key of the build side, for one worker of a scan of the probe side. Each dictionary
/// entry is looked up once.
#[derive(Debug)]
pub struct TextFilter {
    table: Arc<JoinTable>,
    key: usize,
    seen: Remembered,
}

impl TextFilter {
    /// Creates the filter. Returns `None` if the join outputs probe rows without a match, and for keys that are not
    /// strings.
    #[must_use]
    pub fn of(table: &Arc<JoinTable>, key: usize) -> Option<Self> {
        let is_text = table.words.encoding(key).is_some_and(|encoding| encoding.is_of_texts());
        let has_filter = is_text && table.has_filters;
        has_filter.then(|| Self { table: Arc::clone(table), key, seen: Remembered::default() })
    }

    /// Returns the rows that may find a match.
    ///
    /// # Errors
    /// Returns [`Error::Form`](crate::Error::Form) if the values are not strings.
    pub fn keep(&mut self, column: &Column) -> Result<Bits> {
        let mut kept = match (&column.validity, self.table.not_in.is_some()) {
            // For NOT IN, a NULL key decides about all rows and must pass.
            (Some(valid), true) => valid.not(),
            _ => Bits::all(column.rows(), false),
        };
        let Some(encoding) = self.table.words.encoding(self.key) else { return Ok(Bits::all(column.rows(), true)) };
        encoding.codes(column, &mut self.seen, &mut |row, code| {
            if code != NO_WORD {
                kept.set(row);
            }
        })?;
        Ok(kept)
    }
}
