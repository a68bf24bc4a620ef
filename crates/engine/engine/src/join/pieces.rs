//! Joins whose build side exceeds memory: the build side is split into chunks, each chunk becomes a table, and every
//! probe batch is joined with one table after the other.
//!
//! The output for a probe row may depend on all chunks, so the probe rows that have found a match are carried from
//! one chunk to the next.

use super::marks::Marks;
use super::output::Pairs;
use super::probe::{Next, Unmatched};
use super::residual::PairTest;
use super::{JoinKind, JoinTable, ProbeScratch};
use crate::{Batch, Bits, NONE, Result};

/// Probe rows of a batch that have found a match in the chunks processed so far.
#[derive(Debug)]
pub struct Matched {
    rows: usize,
    marks: Marks,
}

impl Matched {
    /// Creates the state of a batch of this many rows, none of them matched.
    #[must_use]
    pub fn none(rows: usize) -> Self {
        Self { rows, marks: Marks::new(rows) }
    }

    /// Returns the bytes of the state of a batch of this many rows.
    #[must_use]
    pub fn memory_bytes(rows: usize) -> usize {
        size_of::<Self>() + rows.div_ceil(64) * 8
    }

    /// Marks rows as matched.
    fn add(&self, rows: &Bits) {
        rows.ones().for_each(|row| self.marks.set(row as u32));
    }

    /// Returns the matched rows.
    fn bits(&self) -> Bits {
        Bits::of_words((0..self.marks.words()).map(|word| self.marks.word(word)).collect(), self.rows)
    }
}

impl JoinTable {
    /// Works like [`JoinTable::probe`] for a table of one chunk of the build side; the same batch must be probed
    /// against the tables of all chunks. `matched` belongs to the batch. Rows that no chunk has matched are output
    /// with the last one.
    ///
    /// # Errors
    /// Returns the errors of [`JoinTable::probe`].
    pub fn probe_piece(
        &self,
        batch: &Batch,
        matched: &Matched,
        is_last: bool,
        scratch: &mut ProbeScratch,
        next: &mut Next<'_>,
    ) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if !self.spec.kind.asks_whole_build() {
            return self.probe(batch, scratch, next);
        }
        self.find(batch, scratch)?;
        let ProbeScratch { found, probe_rows, build_rows, memory, stop, .. } = scratch;
        let test = self.spec.residual.as_ref().map(|residual| PairTest { residual, memory, stop });
        if self.spec.kind.gives_pairs() {
            match test {
                Some(mut test) => {
                    matched.add(&self.fulfilling_pairs(&mut test, batch, found, probe_rows, build_rows, next)?);
                }
                None => {
                    matched.add(&Bits::of(batch.rows, |row| found[row] != NONE));
                    let mut give = |probe_rows: &mut Vec<u32>, build_rows: &mut Vec<u32>| {
                        self.give_pairs(&Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows }, next)
                    };
                    self.each_pairs(found, Unmatched::Left, probe_rows, build_rows, &mut give)?;
                }
            }
            return if is_last { self.alone(batch, &matched.bits(), next) } else { Ok(()) };
        }
        // Rows that already have a match need no further lookups.
        let before = matched.bits();
        before.ones().for_each(|row| found[row] = NONE);
        let now = match test {
            Some(mut test) => self.first_fulfilling(&mut test, batch, found, probe_rows, build_rows)?,
            None => Bits::of(batch.rows, |row| found[row] != NONE),
        };
        matched.add(&now);
        match self.spec.kind {
            JoinKind::RightSemi => self.probe_rows(batch, now, next),
            _ if is_last => self.probe_rows(batch, matched.bits(), next),
            _ => Ok(()),
        }
    }
}
