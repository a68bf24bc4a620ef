//! Joins with a residual condition beyond the equality of keys.

use std::sync::atomic::AtomicBool;

use super::pair_output::RowPairs;
use super::probe::{BatchConsumer, UnmatchedProbeRows};
use super::{JoinHashTable, JoinKind, Residual};
use crate::expression::ExpressionState;
use crate::{BATCH_ROWS, Batch, Bitmap, Error, NONE, Result, check_stopped, run_yielding};

/// Residual condition with the evaluation state of the probing worker.
pub(super) struct ResidualEvaluator<'a> {
    pub(super) residual: &'a Residual,
    pub(super) expression_state: &'a mut ExpressionState,
    pub(super) stop: &'a AtomicBool,
}

impl JoinHashTable {
    /// Joins a probe batch whose rows have found these groups.
    pub(super) fn probe_with_residual(
        &self,
        test: &mut ResidualEvaluator<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        match self.spec.kind {
            kind if kind.outputs_pairs() => {
                let matched = self.output_residual_pairs(test, batch, found, probe_rows, build_rows, next)?;
                if kind.outputs_unmatched_probe_rows() {
                    self.output_unmatched_probe_rows(batch, &matched, next)
                } else {
                    Ok(())
                }
            }
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark => {
                self.mark_residual_matches(test, batch, found, probe_rows, build_rows)
            }
            _ => {
                let matched = self.find_residual_matches(test, batch, found, probe_rows, build_rows)?;
                self.output_probe_rows(batch, matched, next)
            }
        }
    }

    /// Outputs the pairs that fulfil the condition. Returns the probe rows that have such a pair if the join also
    /// outputs probe rows without a match; otherwise the bitmap stays empty.
    pub(super) fn output_residual_pairs(
        &self,
        test: &mut ResidualEvaluator<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut BatchConsumer<'_>,
    ) -> Result<Bitmap> {
        let mut matched = Bitmap::filled(batch.rows, false);
        self.for_each_pair_chunk(
            found,
            UnmatchedProbeRows::Skip,
            probe_rows,
            build_rows,
            &mut |probe_rows, build_rows| {
                self.retain_residual_pairs(test, batch, probe_rows, build_rows)?;
                if build_rows.is_empty() {
                    return Ok(());
                }
                if self.spec.kind.outputs_unmatched_probe_rows() {
                    probe_rows.iter().for_each(|row| matched.set(*row as usize));
                }
                self.output_pairs(&RowPairs { probe: batch, probe_rows: Some(probe_rows), build_rows }, next)
            },
        )?;
        Ok(matched)
    }

    /// Outputs the probe rows without a match, padded with NULLs.
    pub(super) fn output_unmatched_probe_rows(
        &self,
        batch: &Batch,
        matched: &Bitmap,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        if matched.count_ones() == batch.rows {
            return Ok(());
        }
        let alone: Vec<u32> = matched.not().ones().map(|row| row as u32).collect();
        let build_rows = vec![NONE; alone.len()];
        self.output_pairs(&RowPairs { probe: batch, probe_rows: Some(&alone), build_rows: &build_rows }, next)
    }

    /// Marks the build rows of pairs that fulfil the condition; evaluates it only for rows not marked yet.
    fn mark_residual_matches(
        &self,
        test: &mut ResidualEvaluator<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(marks) = &self.matched_rows else { return Ok(()) };
        self.for_each_pair_chunk(
            found,
            UnmatchedProbeRows::Skip,
            probe_rows,
            build_rows,
            &mut |probe_rows, build_rows| {
                retain_pairs(probe_rows, build_rows, |pair, build_rows| !marks.get(build_rows[pair]));
                self.retain_residual_pairs(test, batch, probe_rows, build_rows)?;
                self.mark_matched(build_rows);
                Ok(())
            },
        )
    }

    /// Returns the probe rows that have a pair fulfilling the condition. Tries a few candidates of each row first,
    /// because they usually decide.
    pub(super) fn find_residual_matches(
        &self,
        test: &mut ResidualEvaluator<'_>,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<Bitmap> {
        let mut matched = Bitmap::filled(batch.rows, false);
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
                run_yielding(|| self.retain_residual_pairs(test, batch, probe_rows, build_rows))?;
                probe_rows.iter().for_each(|row| matched.set(*row as usize));
            }
            asked += at_once;
            at_once = (at_once * 4).min(BATCH_ROWS);
            open.retain(|row| !matched.get(*row as usize) && self.groups.rows(found[*row as usize]).len() > asked);
        }
        Ok(matched)
    }

    /// Removes the pairs, at most about [`BATCH_ROWS`], that do not fulfil the condition. Checks for cancellation,
    /// because millions of pairs may be tested without any output.
    fn retain_residual_pairs(
        &self,
        test: &mut ResidualEvaluator<'_>,
        batch: &Batch,
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        check_stopped(test.stop)?;
        if build_rows.is_empty() {
            return Ok(());
        }
        let pairs = RowPairs { probe: batch, probe_rows: Some(probe_rows), build_rows };
        let ResidualEvaluator { residual, expression_state, .. } = test;
        let is_true =
            residual.condition.is_true_in_portions(&self.build_batch(&residual.columns, &pairs)?, expression_state)?;
        if is_true.rows() != build_rows.len() {
            return Err(Error::Internal("a join's residual condition returned the wrong number of rows"));
        }
        if is_true.count_ones() < is_true.rows() {
            retain_pairs(probe_rows, build_rows, |pair, _| is_true.get(pair));
        }
        Ok(())
    }
}

/// Removes the pairs for which `is_kept` is false.
fn retain_pairs(probe_rows: &mut Vec<u32>, build_rows: &mut Vec<u32>, is_kept: impl Fn(usize, &[u32]) -> bool) {
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
