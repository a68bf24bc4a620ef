//! Which strings of a probe side find anything: what a scan asks about the dictionaries of its pages.

use std::sync::Arc;

use super::encoding::Remembered;
use super::{JoinTable, NO_WORD};
use crate::{Bits, Column, Result};

/// The strings of one key of a build side, for one worker of a scan of the probe side: of a dictionary it asks about each string once.
#[derive(Debug)]
pub struct TextFilter {
    table: Arc<JoinTable>,
    key: usize,
    seen: Remembered,
}

impl TextFilter {
    /// `None` where rows that find nothing are given too, and for keys that are no strings.
    #[must_use]
    pub fn of(table: &Arc<JoinTable>, key: usize) -> Option<Self> {
        let is_text = table.words.encoding(key).is_some_and(|encoding| encoding.is_of_texts());
        let has_filter = is_text && table.has_filters;
        has_filter.then(|| Self { table: Arc::clone(table), key, seen: Remembered::default() })
    }

    /// The rows that may find something.
    ///
    /// # Errors
    /// Where the values are no strings.
    pub fn keep(&mut self, column: &Column) -> Result<Bits> {
        let mut kept = match (&column.validity, self.table.not_in.is_some()) {
            // A NULL among the values decides about all rows.
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
