//! Matching of probe batches against the hash table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::key_encoding::DictionaryLookupCache;
use super::pair_output::{RowPairs, probe_column};
use super::residual::ResidualEvaluator;
use super::{JoinHashTable, JoinKind, OutputColumn};
use crate::expression::{CallCosts, ExpressionState};
use crate::pipeline::NanoClock;
use crate::{BATCH_ROWS, Batch, Bitmap, Column, ColumnData, Error, NONE, Result, run_yielding};

/// Buffers and caches that a worker reuses between the batches it probes with.
#[derive(Debug, Default)]
pub struct ProbeScratch {
    /// Id of the table that the caches belong to.
    table_id: u64,
    /// Cached lookups of dictionary entries, per key.
    lookup_caches: Vec<DictionaryLookupCache>,
    /// Key code of each row.
    key_codes: Vec<u64>,
    /// Group of each row, or [`NONE`] for a row without a match.
    pub(super) group_ids: Vec<u32>,
    /// Rows whose hash lookup is not finished yet.
    pending: Vec<u32>,
    /// Probe rows and build rows of the current pairs.
    pub(super) probe_rows: Vec<u32>,
    pub(super) build_rows: Vec<u32>,
    /// Evaluation state of the residual condition.
    pub(super) state: ExpressionState,
    /// Set when the query is cancelled or its rows are no longer wanted.
    pub(super) stop: Arc<AtomicBool>,
}

impl ProbeScratch {
    /// Creates the buffers of a worker that `stop` cancels; `now` measures the time of Arrow functions.
    #[must_use]
    pub fn new(stop: &Arc<AtomicBool>, now: Option<Arc<NanoClock>>) -> Self {
        Self { state: ExpressionState::with_clock(now), stop: Arc::clone(stop), ..Self::default() }
    }

    /// Returns the cost of Arrow functions so far.
    #[must_use]
    pub fn calls(&self) -> CallCosts {
        self.state.call_costs()
    }
}

/// Treatment of probe rows without a match in a list of pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum UnmatchedProbeRows {
    /// Skipped.
    Skip,
    /// Paired with [`NONE`] instead of a build row.
    PadWithNull,
}

/// Consumer of pairs, given as probe rows and build rows; it may remove pairs from both lists.
pub(super) type PairConsumer<'a> = dyn FnMut(&mut Vec<u32>, &mut Vec<u32>) -> Result<()> + 'a;

/// Consumer of output batches.
pub(super) type BatchConsumer<'a> = dyn FnMut(Batch) -> Result<()> + 'a;

impl JoinHashTable {
    /// Joins a probe batch and passes output batches of up to about [`BATCH_ROWS`] rows to `next`, whose error ends
    /// the call.
    ///
    /// # Errors
    /// Returns the errors of `next` and of the residual condition, [`Error::Stopped`], and [`Error::Internal`] if key
    /// columns differ in their physical types from the build side's.
    pub fn probe(&self, batch: &Batch, scratch: &mut ProbeScratch, next: &mut BatchConsumer<'_>) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if let Some(not_in) = &self.not_in {
            let key = self.spec.keys.first().and_then(|(_, probe)| batch.columns.get(*probe));
            not_in
                .record_keys(key.ok_or(Error::Internal("a join key column is missing in a batch of the probe side"))?);
            if not_in.is_result_empty() {
                return Ok(());
            }
        }
        self.find_groups(batch, scratch)?;
        let ProbeScratch { group_ids: found, probe_rows, build_rows, state: expression_state, stop, .. } = scratch;
        if let Some(residual) = &self.spec.residual {
            let mut test = ResidualEvaluator { residual, expression_state, stop };
            return self.probe_with_residual(&mut test, batch, found, probe_rows, build_rows, next);
        }
        match self.spec.kind {
            JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftNotIn | JoinKind::LeftMark => {
                self.mark_matched_groups(found);
                Ok(())
            }
            JoinKind::RightMark => {
                self.output_probe_rows(batch, Bitmap::from_fn(batch.rows, |row| found[row] != NONE), next)
            }
            kind @ (JoinKind::RightSemi | JoinKind::RightAnti) => {
                probe_rows.resize(found.len(), 0);
                let mut count = 0;
                for (row, group) in (0..).zip(&*found) {
                    probe_rows[count] = row;
                    count += usize::from((*group == NONE) == (kind == JoinKind::RightAnti));
                }
                self.output_selected_probe_rows(batch, &probe_rows[..count], &Arc::default(), next)
            }
            _ if self.groups.are_unique() => self.output_unique_matches(batch, found, probe_rows, build_rows, next),
            _ => self.output_all_matches(batch, found, probe_rows, build_rows, next),
        }
    }

    /// Looks up the group of each row's key in `scratch.found`.
    pub(super) fn find_groups(&self, batch: &Batch, scratch: &mut ProbeScratch) -> Result<()> {
        if batch.columns.iter().any(|column| column.rows() != batch.rows) || u32::try_from(batch.rows).is_err() {
            return Err(Error::Internal("a probe-side batch has columns of differing lengths"));
        }
        if scratch.table_id != self.id {
            scratch.table_id = self.id;
            scratch.lookup_caches.clear();
        }
        let ProbeScratch { lookup_caches: seen, key_codes: words, group_ids: found, pending: open, .. } = scratch;
        let position = |(_, probe): &(usize, usize)| *probe;
        let mut one = [0];
        let many: Vec<usize>;
        let positions: &[usize] = if let [key] = &*self.spec.keys {
            one[0] = position(key);
            &one
        } else {
            many = self.spec.keys.iter().map(position).collect();
            &many
        };
        if let Some((values, least)) = self.key_packing.single_integer_key(batch, positions) {
            let values = &values[..batch.rows];
            self.index.find(batch.rows, |row| values[row].wrapping_sub(least).cast_unsigned(), found, open);
        } else {
            self.key_packing.pack_batch(batch, positions, seen, words)?;
            let words = &words[..batch.rows];
            self.index.find(batch.rows, |row| words[row], found, open);
        }
        Ok(())
    }

    /// Outputs the pairs if a probe row has at most one match.
    fn output_unique_matches(
        &self,
        batch: &Batch,
        found: &mut [u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        let misses = found.iter().filter(|group| **group == NONE).count();
        let pairs = if misses == 0 {
            self.groups.replace_by_rows(found);
            RowPairs { probe: batch, probe_rows: None, build_rows: found }
        } else if self.spec.kind.outputs_unmatched_probe_rows() {
            for group in found.iter_mut().filter(|group| **group != NONE) {
                *group = self.groups.rows(*group).start;
            }
            RowPairs { probe: batch, probe_rows: None, build_rows: found }
        } else {
            probe_rows.resize(found.len(), 0);
            build_rows.resize(found.len(), 0);
            let mut count = 0;
            for (row, group) in (0..).zip(&*found) {
                probe_rows[count] = row;
                build_rows[count] = *group;
                count += usize::from(*group != NONE);
            }
            build_rows.truncate(count);
            if count == 0 {
                return Ok(());
            }
            self.groups.replace_by_rows(build_rows);
            RowPairs { probe: batch, probe_rows: Some(&probe_rows[..count]), build_rows }
        };
        self.output_pairs(&pairs, next)
    }

    /// Outputs the pairs if a probe row may have several matches.
    fn output_all_matches(
        &self,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        let unmatched = if self.spec.kind.outputs_unmatched_probe_rows() {
            UnmatchedProbeRows::PadWithNull
        } else {
            UnmatchedProbeRows::Skip
        };
        self.for_each_pair_chunk(found, unmatched, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            self.output_pairs(&RowPairs { probe: batch, probe_rows: Some(probe_rows), build_rows }, next)
        })
    }

    /// Marks all build rows of the groups that were found.
    fn mark_matched_groups(&self, found: &[u32]) {
        let Some(marks) = &self.matched_rows else { return };
        for group in found.iter().filter(|group| **group != NONE) {
            // Only whole groups are marked here, so a group's first row tells whether all of them are.
            let rows = self.groups.rows(*group);
            if !marks.get(rows.start) {
                rows.for_each(|row| marks.set(row));
            }
        }
    }

    /// Outputs the probe rows that the join kind selects, given which rows have a match.
    pub(super) fn output_probe_rows(&self, batch: &Batch, matched: Bitmap, next: &mut BatchConsumer<'_>) -> Result<()> {
        let given = match self.spec.kind {
            JoinKind::RightSemi => matched.clone(),
            JoinKind::RightAnti => matched.not(),
            _ => Bitmap::filled(batch.rows, true),
        };
        let rows: Vec<u32> = given.ones().map(|row| row as u32).collect();
        self.output_selected_probe_rows(batch, &rows, &Arc::new(matched), next)
    }

    /// Outputs these probe rows; `marks` is used only by mark joins, which output all rows.
    fn output_selected_probe_rows(
        &self,
        batch: &Batch,
        rows: &[u32],
        marks: &Arc<Bitmap>,
        next: &mut BatchConsumer<'_>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let some = (rows.len() < batch.rows).then_some(rows);
        let column = |column: &OutputColumn| match *column {
            OutputColumn::Probe(position) => probe_column(batch, position, some),
            OutputColumn::Mark => Ok(Column::new(ColumnData::Bools(Arc::clone(marks)))),
            OutputColumn::Build(_) => {
                Err(Error::Internal("the output of a join that returns only probe rows has a build column"))
            }
        };
        next(Batch { rows: rows.len(), columns: self.spec.output.iter().map(column).collect::<Result<_>>()? })
    }

    /// Enumerates all pairs and passes them to `take` in chunks of about [`BATCH_ROWS`].
    pub(super) fn for_each_pair_chunk(
        &self,
        found: &[u32],
        unmatched: UnmatchedProbeRows,
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        take: &mut PairConsumer<'_>,
    ) -> Result<()> {
        probe_rows.clear();
        build_rows.clear();
        for (row, group) in (0..).zip(found) {
            if *group == NONE {
                if unmatched == UnmatchedProbeRows::Skip {
                    continue;
                }
                probe_rows.push(row);
                build_rows.push(NONE);
            } else {
                let mut rows = self.groups.rows(*group);
                while build_rows.len() + rows.len() > BATCH_ROWS {
                    let now = rows.start..rows.start + (BATCH_ROWS - build_rows.len()) as u32;
                    probe_rows.extend(std::iter::repeat_n(row, now.len()));
                    build_rows.extend(now.clone());
                    run_yielding(|| take(probe_rows, build_rows))?;
                    probe_rows.clear();
                    build_rows.clear();
                    rows.start = now.end;
                }
                probe_rows.extend(std::iter::repeat_n(row, rows.len()));
                build_rows.extend(rows);
            }
            if build_rows.len() >= BATCH_ROWS {
                run_yielding(|| take(probe_rows, build_rows))?;
                probe_rows.clear();
                build_rows.clear();
            }
        }
        if build_rows.is_empty() { Ok(()) } else { take(probe_rows, build_rows) }
    }

    /// Marks the build rows of the pairs and outputs the pairs.
    pub(super) fn output_pairs(&self, pairs: &RowPairs<'_>, next: &mut BatchConsumer<'_>) -> Result<()> {
        self.mark_matched(pairs.build_rows);
        next(self.build_batch(&self.spec.output, pairs)?)
    }

    /// Marks the build rows of pairs if the join outputs build rows after probing.
    pub(super) fn mark_matched(&self, build_rows: &[u32]) {
        if let Some(marks) = &self.matched_rows {
            build_rows.iter().filter(|row| **row != NONE).for_each(|row| marks.set(*row));
        }
    }
}
