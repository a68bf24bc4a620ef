//! Build rows that a join outputs after all probing.

use std::sync::Arc;

use super::not_in::NotInState;
use super::{JoinHashTable, JoinKind, OutputColumn};
use crate::{BATCH_ROWS, Batch, Bitmap, Column, ColumnData, Error, PhysicalType, Result, run_yielding};

impl JoinHashTable {
    /// Outputs build rows to `next` after all probing has finished: rows without a match, padded with NULLs
    /// ([`JoinKind::Left`], [`JoinKind::Full`]); rows with a match ([`JoinKind::LeftSemi`]); rows without a match
    /// ([`JoinKind::LeftAnti`]) or certainly without one ([`JoinKind::LeftNotIn`]); or all rows with their mark
    /// ([`JoinKind::LeftMark`]). Outputs nothing for other kinds. Workers divide the rows into `parts` shares; this
    /// call outputs share `part`.
    ///
    /// # Errors
    /// Returns the errors of `next`, and [`Error::Internal`] if `probe_forms` lacks a column of the output.
    pub fn output_build_rows(
        &self,
        part: usize,
        parts: usize,
        probe_forms: &[PhysicalType],
        next: &mut dyn FnMut(Batch) -> Result<()>,
    ) -> Result<()> {
        let Some(marks) = &self.matched_rows else { return Ok(()) };
        if self.not_in.as_ref().is_some_and(NotInState::is_result_empty) {
            return Ok(());
        }
        let words = marks.word_count();
        let share = |part: usize| words * part.min(parts) / parts.max(1);
        let mut rows: Vec<u32> = Vec::with_capacity(BATCH_ROWS);
        for at in share(part)..share(part.saturating_add(1)) {
            let there = u64::MAX >> (64 - (self.rows - at * 64).min(64));
            let mut given = there
                & match self.spec.kind {
                    JoinKind::LeftSemi => marks.word(at),
                    JoinKind::LeftMark => u64::MAX,
                    _ => !marks.word(at) & !self.not_in.as_ref().map_or(0, |not_in| not_in.unknown_rows(at)),
                };
            while given != 0 {
                rows.push((at * 64) as u32 + given.trailing_zeros());
                given &= given - 1;
            }
            if rows.len() + 64 > BATCH_ROWS {
                let batch = self.build_rows_batch(&rows, probe_forms)?;
                run_yielding(|| next(batch))?;
                rows.clear();
            }
        }
        if rows.is_empty() { Ok(()) } else { next(self.build_rows_batch(&rows, probe_forms)?) }
    }

    /// Builds an output batch of these build rows.
    fn build_rows_batch(&self, rows: &[u32], probe_forms: &[PhysicalType]) -> Result<Batch> {
        let column = |column: &OutputColumn| match *column {
            OutputColumn::Build(position) => self.column(position)?.take(rows),
            OutputColumn::Probe(position) => {
                let form =
                    probe_forms.get(position).ok_or(Error::Internal("a probe-side output column does not exist"))?;
                Ok(form.null_column(rows.len()))
            }
            OutputColumn::Mark => {
                let marks = self.matched_rows.as_ref().ok_or(Error::Internal("a mark join has no match bitmap"))?;
                let bits = Bitmap::from_fn(rows.len(), |row| marks.get(rows[row]));
                Ok(Column::new(ColumnData::Bools(Arc::new(bits))))
            }
        };
        Ok(Batch { rows: rows.len(), columns: self.spec.output.iter().map(column).collect::<Result<_>>()? })
    }
}
