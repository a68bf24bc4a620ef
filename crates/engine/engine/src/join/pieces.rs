//! A build side that has no room as a whole: each piece of it is a table, and all probe rows go through one after the other.
//!
//! What becomes of a probe row may depend on all pieces: which rows have found a match is kept from one to the next.

use super::marks::Marks;
use super::output::Pairs;
use super::probe::{Next, Unmatched};
use super::residual::PairTest;
use super::{JoinKind, JoinTable, ProbeScratch};
use crate::{Batch, Bits, NONE, Result};

/// The rows of a batch that have found a match in the pieces so far.
#[derive(Debug)]
pub struct Matched {
    rows: usize,
    marks: Marks,
}

impl Matched {
    /// None of so many rows.
    #[must_use]
    pub fn none(rows: usize) -> Self {
        Self { rows, marks: Marks::new(rows) }
    }

    /// What it takes in memory.
    #[must_use]
    pub fn memory_bytes(rows: usize) -> usize {
        size_of::<Self>() + rows.div_ceil(64) * 8
    }

    fn add(&self, rows: &Bits) {
        rows.ones().for_each(|row| self.marks.set(row as u32));
    }

    fn bits(&self) -> Bits {
        Bits::of_words((0..self.marks.words()).map(|word| self.marks.word(word)).collect(), self.rows)
    }
}

impl JoinTable {
    /// As [`JoinTable::probe`], where the table is of a piece of the build side, and the same batch goes through the tables of all. `matched` is
    /// the batch's own; rows that no piece has matched are given with the last.
    ///
    /// # Errors
    /// As [`JoinTable::probe`].
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
        // Of those that have a match already nothing is asked.
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
