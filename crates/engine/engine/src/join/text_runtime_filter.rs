//! Runtime filter on a string join key, applied by scans to the dictionaries of their pages.

use std::sync::Arc;

use super::key_encoding::DictionaryLookupCache;
use super::{JoinHashTable, NO_KEY_CODE};
use crate::{Bitmap, Column, Result};

/// Runtime filter on a string key of the build side, for one worker of a scan of the probe side. Each dictionary
/// entry is looked up once.
#[derive(Debug)]
pub struct TextKeyFilter {
    table: Arc<JoinHashTable>,
    key: usize,
    lookup_cache: DictionaryLookupCache,
}

impl TextKeyFilter {
    /// Creates the filter. Returns `None` if the join outputs probe rows without a match, and for keys that are not
    /// strings.
    #[must_use]
    pub fn try_new(table: &Arc<JoinHashTable>, key: usize) -> Option<Self> {
        let is_text = table.key_packing.encoding(key).is_some_and(|encoding| encoding.is_string());
        let has_filter = is_text && table.has_filters;
        has_filter.then(|| Self { table: Arc::clone(table), key, lookup_cache: DictionaryLookupCache::default() })
    }

    /// Returns the rows that may find a match.
    ///
    /// # Errors
    /// Returns [`Error::Internal`](crate::Error::Form) if the values are not strings.
    pub fn matching_rows(&mut self, column: &Column) -> Result<Bitmap> {
        let mut kept = match (&column.validity, self.table.not_in.is_some()) {
            // For NOT IN, a NULL key decides about all rows and must pass.
            (Some(valid), true) => valid.not(),
            _ => Bitmap::filled(column.rows(), false),
        };
        let Some(encoding) = self.table.key_packing.encoding(self.key) else {
            return Ok(Bitmap::filled(column.rows(), true));
        };
        encoding.for_each_code(column, &mut self.lookup_cache, &mut |row, code| {
            if code != NO_KEY_CODE {
                kept.set(row);
            }
        })?;
        Ok(kept)
    }
}
