//! Pairs of rows that fulfil a condition besides their keys.

use std::sync::atomic::AtomicBool;

use super::output::Pairs;
use super::probe::{Next, Unmatched};
use super::{JoinKind, JoinTable, Residual};
use crate::expression::Memory;
use crate::{BATCH_ROWS, Batch, Bits, Error, NONE, Result, run_part, unless_stopped};

/// The condition, and what the worker that asks remembers of it.
pub(super) struct PairTest<'a> {
    pub(super) residual: &'a Residual,
    pub(super) memory: &'a mut Memory,
    pub(super) stop: &'a AtomicBool,
}

impl JoinTable {
    /// Joins a batch whose rows have found these groups.
    pub(super) fn fulfilling(
        &self,
        test: &mut PairTest<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut Next<'_>,
    ) -> Result<()> {
        match self.spec.kind {
            kind if kind.gives_pairs() => {
                let matched = self.fulfilling_pairs(test, batch, found, probe_rows, build_rows, next)?;
                if kind.keeps_probe_rows() { self.alone(batch, &matched, next) } else { Ok(()) }
            }
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark => {
                self.mark_fulfilling(test, batch, found, probe_rows, build_rows)
            }
            _ => {
                let matched = self.first_fulfilling(test, batch, found, probe_rows, build_rows)?;
                self.probe_rows(batch, matched, next)
            }
        }
    }

    /// Gives the pairs; the probe rows that they have, of joins that keep the others too.
    pub(super) fn fulfilling_pairs(
        &self,
        test: &mut PairTest<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut Next<'_>,
    ) -> Result<Bits> {
        let mut matched = Bits::all(batch.rows, false);
        self.each_pairs(found, Unmatched::Left, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            self.retain_fulfilling(test, batch, probe_rows, build_rows)?;
            if build_rows.is_empty() {
                return Ok(());
            }
            if self.spec.kind.keeps_probe_rows() {
                probe_rows.iter().for_each(|row| matched.set(*row as usize));
            }
            self.give_pairs(&Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows }, next)
        })?;
        Ok(matched)
    }

    /// Gives the probe rows that have no match, with NULLs for the build side.
    pub(super) fn alone(&self, batch: &Batch, matched: &Bits, next: &mut Next<'_>) -> Result<()> {
        if matched.count() == batch.rows {
            return Ok(());
        }
        let alone: Vec<u32> = matched.not().ones().map(|row| row as u32).collect();
        let build_rows = vec![NONE; alone.len()];
        self.give_pairs(&Pairs { probe: batch, probe_rows: Some(&alone), build_rows: &build_rows }, next)
    }

    /// Marks the build rows of pairs that fulfil a condition; asks only about those not marked yet.
    fn mark_fulfilling(
        &self,
        test: &mut PairTest<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(marks) = &self.marks else { return Ok(()) };
        self.each_pairs(found, Unmatched::Left, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            retain(probe_rows, build_rows, |pair, build_rows| !marks.get(build_rows[pair]));
            self.retain_fulfilling(test, batch, probe_rows, build_rows)?;
            self.mark(build_rows);
            Ok(())
        })
    }

    /// The probe rows with a match that fulfils a condition. Asks about few matches of each row first: most often they decide.
    pub(super) fn first_fulfilling(
        &self,
        test: &mut PairTest<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<Bits> {
        let mut matched = Bits::all(batch.rows, false);
        let mut open: Vec<u32> = (0..).zip(found).filter(|(_, group)| **group != NONE).map(|(row, _)| row).collect();
        let (mut asked, mut at_once) = (0, 2);
        while !open.is_empty() {
            for some in open.chunks((BATCH_ROWS / at_once).max(1)) {
                probe_rows.clear();
                build_rows.clear();
                for row in some {
                    let rows = self.groups.rows(found[*row as usize]).skip(asked).take(at_once);
                    build_rows.extend(rows.clone());
                    probe_rows.extend(std::iter::repeat_n(*row, rows.len()));
                }
                run_part(|| self.retain_fulfilling(test, batch, probe_rows, build_rows))?;
                probe_rows.iter().for_each(|row| matched.set(*row as usize));
            }
            asked += at_once;
            at_once = (at_once * 4).min(BATCH_ROWS);
            open.retain(|row| !matched.get(*row as usize) && self.groups.rows(found[*row as usize]).len() > asked);
        }
        Ok(matched)
    }

    /// Keeps the pairs that fulfil a condition, of a few thousand. Millions may come here of which none is given on.
    fn retain_fulfilling(
        &self,
        test: &mut PairTest<'_>,
        batch: &Batch,
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        unless_stopped(test.stop)?;
        if build_rows.is_empty() {
            return Ok(());
        }
        let pairs = Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows };
        let PairTest { residual, memory, .. } = test;
        let is_true = residual.condition.is_true_in_portions(&self.pairs(&residual.columns, &pairs)?, memory)?;
        if is_true.rows() != build_rows.len() {
            return Err(Error::Form("a condition's answers are not as many as its rows"));
        }
        if is_true.count() < is_true.rows() {
            retain(probe_rows, build_rows, |pair, _| is_true.get(pair));
        }
        Ok(())
    }
}

/// Keeps some of the pairs.
fn retain(probe_rows: &mut Vec<u32>, build_rows: &mut Vec<u32>, is_kept: impl Fn(usize, &[u32]) -> bool) {
    let mut kept = 0;
    for pair in 0..build_rows.len() {
        let is_kept = is_kept(pair, build_rows);
        probe_rows[kept] = probe_rows[pair];
        build_rows[kept] = build_rows[pair];
        kept += usize::from(is_kept);
    }
    probe_rows.truncate(kept);
    build_rows.truncate(kept);
}
