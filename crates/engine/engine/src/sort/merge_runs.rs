//! Merges sorted runs with a tree of losers (Knuth, The Art of Computer Programming, 5.4.1).

use std::cmp::Ordering;
use std::sync::Arc;

use super::key_prefix::key_prefix;
use super::{SortSpec, compare};
use crate::vector::interleave;
use crate::{BATCH_ROWS, Batch, Column, Error, PhysicalType, Result};

/// Merge of sorted runs, which the caller supplies block by block. Equal rows are returned in the order of their runs.
#[derive(Debug)]
pub struct RunMerger {
    spec: Arc<SortSpec>,
    /// Number of rows still to be returned.
    remaining_rows: usize,
    runs: Vec<Run>,
    /// Runs that need their next block.
    awaiting_block: Vec<usize>,
    /// Winning run, then the loser at each node of the tree; empty until all runs have their first block.
    loser_tree: Vec<usize>,
    /// Current blocks of the runs, and exhausted blocks that picked rows refer to.
    blocks: Vec<Batch>,
    /// Picked rows, in order: block and row.
    picked_rows: Vec<(u32, u32)>,
}

/// Cursor in the current block of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    block: u32,
    row: u32,
    rows: u32,
    /// Prefix of the row's leading key.
    prefix: u128,
    has_ended: bool,
}

/// Step of a merge: rows, or a request to the caller.
#[derive(Debug)]
pub enum MergeStep {
    /// Next rows in order.
    Rows(Batch),
    /// Request for the next block of the run with this number.
    NeedsBlock(usize),
    /// All rows have been returned.
    End,
}

impl RunMerger {
    /// Creates a merge of `runs` runs in the order of `spec`, limited to `fetch` rows if it has a limit.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>, runs: usize) -> Self {
        Self {
            spec: Arc::clone(spec),
            remaining_rows: spec.fetch.unwrap_or(usize::MAX),
            runs: vec![Run::default(); runs],
            awaiting_block: (0..runs).rev().collect(),
            loser_tree: Vec::new(),
            blocks: Vec::new(),
            picked_rows: Vec::new(),
        }
    }

    /// Adds the next block of the run that was requested last; `None` ends the run.
    ///
    /// # Errors
    /// [`Error::Internal`] if the block's columns have other forms than `spec`, or the block was not requested.
    pub fn add_block(&mut self, run: usize, block: Option<Batch>) -> Result<()> {
        if self.awaiting_block.last() != Some(&run) {
            return Err(Error::Internal("a merge of sorted runs received a block that it had not requested"));
        }
        match block {
            Some(block) => {
                if !self.spec.matches_column_types(&block) {
                    return Err(Error::Internal(
                        "a block of a sorted run has other columns than the sort specification",
                    ));
                }
                if block.rows == 0 {
                    return Ok(());
                }
                let number = |number: usize| {
                    u32::try_from(number).map_err(|_| Error::OutOfMemory("the blocks of sorted runs that are merged"))
                };
                let at = &mut self.runs[run];
                (at.block, at.row, at.rows) = (number(self.blocks.len())?, 0, number(block.rows)?);
                self.blocks.push(block);
                self.update_prefix(run);
            }
            None => self.runs[run].has_ended = true,
        }
        self.awaiting_block.pop();
        if self.loser_tree.is_empty() { Ok(()) } else { self.replay(run) }
    }

    /// Returns the next rows, or requests a block.
    ///
    /// # Errors
    /// Internal errors only.
    #[expect(clippy::should_implement_trait, reason = "a step may request a block, unlike an iterator's item")]
    pub fn next(&mut self) -> Result<MergeStep> {
        if self.remaining_rows == 0 || self.runs.is_empty() {
            return self.finish();
        }
        loop {
            if let Some(run) = self.awaiting_block.last() {
                // Returns the picked rows once too many exhausted blocks are retained for them.
                let is_full = 2 * self.runs.len() < self.blocks.len();
                return if is_full && !self.picked_rows.is_empty() {
                    self.emit_picked()
                } else {
                    Ok(MergeStep::NeedsBlock(*run))
                };
            }
            if self.loser_tree.is_empty() {
                self.build_tree()?;
            }
            let first = self.loser_tree[0];
            if self.runs[first].has_ended {
                return self.finish();
            }
            if self.picked_rows.is_empty() && self.runs.iter().filter(|run| !run.has_ended).count() == 1 {
                return self.emit_last_run(first);
            }
            if self.picked_rows.len() == BATCH_ROWS {
                return self.emit_picked();
            }
            self.pick(first)?;
            if self.remaining_rows == 0 {
                return self.emit_picked();
            }
        }
    }

    fn pick(&mut self, run: usize) -> Result<()> {
        let at = &mut self.runs[run];
        self.picked_rows.push((at.block, at.row));
        self.remaining_rows -= 1;
        at.row += 1;
        if at.row == at.rows {
            self.awaiting_block.push(run);
            return Ok(());
        }
        self.update_prefix(run);
        self.replay(run)
    }

    fn finish(&mut self) -> Result<MergeStep> {
        if self.picked_rows.is_empty() { Ok(MergeStep::End) } else { self.emit_picked() }
    }

    /// Returns the picked rows as a batch.
    fn emit_picked(&mut self) -> Result<MergeStep> {
        let column = |(position, form): (usize, &PhysicalType)| {
            let columns: Vec<&Column> = self.blocks.iter().map(|block| &block.columns[position]).collect();
            interleave(&columns, &self.picked_rows, *form)
        };
        let columns = self.spec.column_types.iter().enumerate().map(column).collect::<Result<_>>()?;
        let rows = self.picked_rows.len();
        self.picked_rows.clear();
        self.drop_exhausted_blocks();
        Ok(MergeStep::Rows(Batch { rows, columns }))
    }

    /// Returns a slice of the only run that has not ended, without comparisons.
    fn emit_last_run(&mut self, run: usize) -> Result<MergeStep> {
        let at = &mut self.runs[run];
        let (start, rows) = (at.row as usize, at.rows as usize);
        let end = rows.min(start + BATCH_ROWS.min(self.remaining_rows));
        let batch = self.blocks[at.block as usize].clone().slice(start, end);
        self.remaining_rows -= batch.rows;
        at.row = u32::try_from(end).expect("a block has fewer than 2^32 rows");
        if end == rows {
            self.awaiting_block.push(run);
            self.drop_exhausted_blocks();
        } else {
            self.update_prefix(run);
        }
        Ok(MergeStep::Rows(batch))
    }

    /// Drops exhausted blocks.
    fn drop_exhausted_blocks(&mut self) {
        let mut blocks = Vec::with_capacity(self.runs.len());
        for run in self.runs.iter_mut().filter(|run| run.row < run.rows) {
            blocks.push(self.blocks[run.block as usize].clone());
            run.block = u32::try_from(blocks.len() - 1).expect("blocks are numbered with 32 bits");
        }
        self.blocks = blocks;
    }

    /// Updates the key prefix of a run's current row.
    fn update_prefix(&mut self, run: usize) {
        let Some(key) = self.spec.keys.first() else { return };
        let at = &mut self.runs[run];
        at.prefix = key_prefix(key, &self.blocks[at.block as usize].columns[key.column], at.row as usize);
    }

    /// Builds the tree: each run plays against its neighbour, then the winners play against each other.
    fn build_tree(&mut self) -> Result<()> {
        let leaves = self.runs.len();
        let mut winners: Vec<usize> = std::iter::repeat_n(0, leaves).chain(0..leaves).collect();
        self.loser_tree = vec![0; leaves];
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let is_left = self.comes_before(left, right)?;
            (winners[node], self.loser_tree[node]) = if is_left { (left, right) } else { (right, left) };
        }
        self.loser_tree[0] = winners[1];
        Ok(())
    }

    /// Replays the games on the path from a run, which has a new row, to the root.
    fn replay(&mut self, run: usize) -> Result<()> {
        let (mut winner, mut node) = (run, usize::midpoint(self.runs.len(), run));
        while 0 < node {
            if self.comes_before(self.loser_tree[node], winner)? {
                std::mem::swap(&mut self.loser_tree[node], &mut winner);
            }
            node /= 2;
        }
        self.loser_tree[0] = winner;
        Ok(())
    }

    #[inline]
    fn comes_before(&self, x: usize, y: usize) -> Result<bool> {
        let (left, right) = (&self.runs[x], &self.runs[y]);
        if left.has_ended || right.has_ended {
            return Ok(!left.has_ended);
        }
        let order = match left.prefix.cmp(&right.prefix) {
            Ordering::Equal => {
                let columns = |run: &Run| self.blocks[run.block as usize].columns.as_slice();
                let (x, y) = (left.row as usize, right.row as usize);
                compare::compare_rows(&self.spec.keys, columns(left), x, columns(right), y)?
            }
            order => order,
        };
        Ok(order.then(x.cmp(&y)).is_lt())
    }
}
