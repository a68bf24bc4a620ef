//! Joins whose build side exceeds memory: the build side is split into chunks, each chunk becomes a table, and every
//! probe batch is joined with one table after the other.
//!
//! The output for a probe row may depend on all chunks, so the probe rows that have found a match are carried from
//! one chunk to the next.

use super::match_bitmap::MatchBitmap;
use super::pair_output::RowPairs;
use super::probe::{BatchConsumer, UnmatchedProbeRows};
use super::residual::ResidualEvaluator;
use super::{JoinHashTable, JoinKind, ProbeScratch};
use crate::{Batch, Bitmap, NONE, Result};

/// Probe rows of a batch that have found a match in the chunks processed so far.
#[derive(Debug)]
pub struct ProbeMatches {
    rows: usize,
    matched_rows: MatchBitmap,
}

impl ProbeMatches {
    /// Creates the state of a batch of this many rows, none of them matched.
    #[must_use]
    pub fn new(rows: usize) -> Self {
        Self { rows, matched_rows: MatchBitmap::new(rows) }
    }

    /// Returns the bytes of the state of a batch of this many rows.
    #[must_use]
    pub fn memory_bytes(rows: usize) -> usize {
        size_of::<Self>() + rows.div_ceil(64) * 8
    }

    /// Marks rows as matched.
    fn add(&self, rows: &Bitmap) {
        rows.ones().for_each(|row| self.matched_rows.set(row as u32));
    }

    /// Returns the matched rows.
    fn to_bitmap(&self) -> Bitmap {
        Bitmap::from_words(
            (0..self.matched_rows.word_count()).map(|word| self.matched_rows.word(word)).collect(),
            self.rows,
        )
    }
}

impl JoinHashTable {
    /// Works like [`JoinHashTable::probe`] for a table of one chunk of the build side; the same batch must be probed
    /// against the tables of all chunks. `matched` belongs to the batch. Rows that no chunk has matched are output
    /// with the last one.
    ///
    /// # Errors
    /// Returns the errors of [`JoinHashTable::probe`].
    pub fn probe_chunk(
        &self,
        batch: &Batch,
        matched: &ProbeMatches,
        is_last: bool,
        scratch: &mut ProbeScratch,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if !self.spec.kind.needs_all_build_chunks() {
            return self.probe(batch, scratch, next);
        }
        self.find_groups(batch, scratch)?;
        let ProbeScratch { group_ids: found, probe_rows, build_rows, state: expression_state, stop, .. } = scratch;
        let test = self.spec.residual.as_ref().map(|residual| ResidualEvaluator { residual, expression_state, stop });
        if self.spec.kind.outputs_pairs() {
            match test {
                Some(mut test) => {
                    matched.add(&self.output_residual_pairs(&mut test, batch, found, probe_rows, build_rows, next)?);
                }
                None => {
                    matched.add(&Bitmap::from_fn(batch.rows, |row| found[row] != NONE));
                    let mut give = |probe_rows: &mut Vec<u32>, build_rows: &mut Vec<u32>| {
                        self.output_pairs(&RowPairs { probe: batch, probe_rows: Some(probe_rows), build_rows }, next)
                    };
                    self.for_each_pair_chunk(found, UnmatchedProbeRows::Skip, probe_rows, build_rows, &mut give)?;
                }
            }
            return if is_last { self.output_unmatched_probe_rows(batch, &matched.to_bitmap(), next) } else { Ok(()) };
        }
        // Rows that already have a match need no further lookups.
        let before = matched.to_bitmap();
        before.ones().for_each(|row| found[row] = NONE);
        let now = match test {
            Some(mut test) => self.find_residual_matches(&mut test, batch, found, probe_rows, build_rows)?,
            None => Bitmap::from_fn(batch.rows, |row| found[row] != NONE),
        };
        matched.add(&now);
        match self.spec.kind {
            JoinKind::RightSemi => self.output_probe_rows(batch, now, next),
            _ if is_last => self.output_probe_rows(batch, matched.to_bitmap(), next),
            _ => Ok(()),
        }
    }
}
