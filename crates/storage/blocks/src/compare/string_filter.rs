//! Conditions on blocks of strings.

use crate::decode::LanesBuffer;
use crate::key_ranges::PruneResult;
use crate::row_set::positions;
use crate::text_condition::TextMatcher;
use crate::{Block, Mask, Result, RowSet, TextBuffer, TextCondition, VECTOR_ROWS, ValueKind};

/// Maximum number of remaining rows of a vector for which single strings are decoded.
const ROW_BY_ROW_MAX: usize = 64;

impl Block {
    /// Removes the rows of a block of strings for which a condition is not true.
    pub fn filter_text(&self, condition: &TextCondition, rows: &mut RowSet) -> Result<()> {
        self.expect_kind(self.header().kind == ValueKind::Text)?;
        match condition {
            TextCondition::IsNull => self.filter_nulls(true, rows),
            TextCondition::IsNotNull => self.filter_nulls(false, rows),
            _ => self.filter_strings(&TextMatcher::new(condition), rows)?,
        }
        Ok(())
    }

    fn filter_strings(&self, matcher: &TextMatcher<'_>, rows: &mut RowSet) -> Result<()> {
        debug_assert_eq!(rows.rows(), self.header().rows, "the row set must be over the block's rows");
        let (mut buffer, mut lanes) = (TextBuffer::default(), LanesBuffer::new());
        let mut one = Vec::new();
        for (vector, entry) in self.header().vector_headers.iter().enumerate() {
            if rows.is_empty_in_vector(vector) {
                continue;
            }
            let rows_in_vector = self.header().rows_in_vector(vector);
            let zone = if usize::from(entry.null_count) == rows_in_vector {
                PruneResult::None
            } else {
                matcher.prune(entry.min, entry.max)
            };
            if zone == PruneResult::None {
                rows.clear_vector(vector);
                continue;
            }
            let mut mask = Mask::default();
            if zone == PruneResult::All {
                mask = [u64::MAX; _];
            } else if rows.has_at_most_in_vector(vector, ROW_BY_ROW_MAX) {
                for row in positions(rows.vector(vector)) {
                    one.clear();
                    let passes = self.append_text(vector * VECTOR_ROWS + row, &mut one)? && matcher.matches(&one);
                    mask[row / 64] |= u64::from(passes) << (row % 64);
                }
            } else {
                let texts = self.decode_texts(vector, &mut buffer)?;
                matcher.search(texts.heap(), texts.ends(), |row| mask[row / 64] |= 1 << (row % 64));
                if matcher.is_negated() {
                    mask.iter_mut().for_each(|word| *word = !*word);
                }
            }
            if entry.null_count != 0 {
                rows.retain_in_vector(vector, &self.validity(vector, &mut lanes));
            }
            rows.retain_in_vector(vector, &mask);
        }
        Ok(())
    }
}
