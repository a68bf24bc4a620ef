//! Several runs of rows, each in order, as one: a tree of losers (Knuth, The Art of Computer Programming, 5.4.1).

use std::cmp::Ordering;
use std::sync::Arc;

use super::prefix::prefix;
use super::{SortSpec, compare};
use crate::vector::interleave;
use crate::{BATCH_ROWS, Batch, Column, Error, Form, Result};

/// Merges runs, whose rows it is brought block by block. Rows that are equal come in the order of their runs.
#[derive(Debug)]
pub struct Merge {
    spec: Arc<SortSpec>,
    /// Rows that are still wanted.
    left: usize,
    runs: Vec<Run>,
    /// Runs whose next block is not there.
    waiting: Vec<usize>,
    /// The run whose row comes first, then those that have lost at each node of the tree; empty until all have come.
    tree: Vec<usize>,
    /// What rows have been picked of: the runs' blocks, and some that are used up.
    blocks: Vec<Batch>,
    /// By block and row.
    picks: Vec<(u32, u32)>,
}

/// The rows of a run that are there.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    block: u32,
    row: u32,
    rows: u32,
    /// Of the row's leading key.
    prefix: u128,
    has_ended: bool,
}

/// What comes next of a merge.
#[derive(Debug)]
pub enum Merged {
    Rows(Batch),
    /// The next block of a run is needed, by the run's number.
    Wants(usize),
    End,
}

impl Merge {
    /// Of so many runs, in the order of `spec`; of its first rows alone where it has a limit.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>, runs: usize) -> Self {
        Self {
            spec: Arc::clone(spec),
            left: spec.fetch.unwrap_or(usize::MAX),
            runs: vec![Run::default(); runs],
            waiting: (0..runs).rev().collect(),
            tree: Vec::new(),
            blocks: Vec::new(),
            picks: Vec::new(),
        }
    }

    /// Takes the next block of a run that is waited for; `None` at its end.
    ///
    /// # Errors
    /// Where its columns have other forms than the others', and where it is not waited for.
    pub fn put(&mut self, run: usize, block: Option<Batch>) -> Result<()> {
        if self.waiting.last() != Some(&run) {
            return Err(Error::Form("a block that nobody waits for"));
        }
        match block {
            Some(block) => {
                if !self.spec.has_forms_of(&block) {
                    return Err(Error::Form("a block of a run has other columns"));
                }
                if block.rows == 0 {
                    return Ok(());
                }
                let number = |number: usize| u32::try_from(number).map_err(|_| Error::Memory("the blocks of runs"));
                let at = &mut self.runs[run];
                (at.block, at.row, at.rows) = (number(self.blocks.len())?, 0, number(block.rows)?);
                self.blocks.push(block);
                self.look_at(run);
            }
            None => self.runs[run].has_ended = true,
        }
        self.waiting.pop();
        if self.tree.is_empty() { Ok(()) } else { self.replay(run) }
    }

    /// What comes next.
    ///
    /// # Errors
    /// None that well-formed columns meet.
    #[expect(clippy::should_implement_trait, reason = "what it gives may be a question")]
    pub fn next(&mut self) -> Result<Merged> {
        if self.left == 0 || self.runs.is_empty() {
            return self.ended();
        }
        loop {
            if let Some(run) = self.waiting.last() {
                // Blocks that are used up are kept until what was picked of them is given.
                let is_full = 2 * self.runs.len() < self.blocks.len();
                return if is_full && !self.picks.is_empty() { self.give() } else { Ok(Merged::Wants(*run)) };
            }
            if self.tree.is_empty() {
                self.play()?;
            }
            let first = self.tree[0];
            if self.runs[first].has_ended {
                return self.ended();
            }
            if self.picks.is_empty() && self.runs.iter().filter(|run| !run.has_ended).count() == 1 {
                return self.give_last(first);
            }
            if self.picks.len() == BATCH_ROWS {
                return self.give();
            }
            self.pick(first)?;
            if self.left == 0 {
                return self.give();
            }
        }
    }

    fn pick(&mut self, run: usize) -> Result<()> {
        let at = &mut self.runs[run];
        self.picks.push((at.block, at.row));
        self.left -= 1;
        at.row += 1;
        if at.row == at.rows {
            self.waiting.push(run);
            return Ok(());
        }
        self.look_at(run);
        self.replay(run)
    }

    fn ended(&mut self) -> Result<Merged> {
        if self.picks.is_empty() { Ok(Merged::End) } else { self.give() }
    }

    /// What has been picked.
    fn give(&mut self) -> Result<Merged> {
        let column = |(position, form): (usize, &Form)| {
            let columns: Vec<&Column> = self.blocks.iter().map(|block| &block.columns[position]).collect();
            interleave(&columns, &self.picks, *form)
        };
        let columns = self.spec.forms.iter().enumerate().map(column).collect::<Result<_>>()?;
        let rows = self.picks.len();
        self.picks.clear();
        self.forget();
        Ok(Merged::Rows(Batch { rows, columns }))
    }

    /// Rows of the only run that has some.
    fn give_last(&mut self, run: usize) -> Result<Merged> {
        let at = &mut self.runs[run];
        let (start, rows) = (at.row as usize, at.rows as usize);
        let end = rows.min(start + BATCH_ROWS.min(self.left));
        let batch = self.blocks[at.block as usize].clone().slice(start, end);
        self.left -= batch.rows;
        at.row = u32::try_from(end).expect("a row of a block");
        if end == rows {
            self.waiting.push(run);
            self.forget();
        } else {
            self.look_at(run);
        }
        Ok(Merged::Rows(batch))
    }

    /// Forgets blocks that are used up.
    fn forget(&mut self) {
        let mut blocks = Vec::with_capacity(self.runs.len());
        for run in self.runs.iter_mut().filter(|run| run.row < run.rows) {
            blocks.push(self.blocks[run.block as usize].clone());
            run.block = u32::try_from(blocks.len() - 1).expect("no more blocks than before");
        }
        self.blocks = blocks;
    }

    /// Sees what the leading key of a run's row is.
    fn look_at(&mut self, run: usize) {
        let Some(key) = self.spec.keys.first() else { return };
        let at = &mut self.runs[run];
        at.prefix = prefix(key, &self.blocks[at.block as usize].columns[key.column], at.row as usize);
    }

    /// Has each play against its neighbour, and the winners against each other.
    fn play(&mut self) -> Result<()> {
        let leaves = self.runs.len();
        let mut winners: Vec<usize> = std::iter::repeat_n(0, leaves).chain(0..leaves).collect();
        self.tree = vec![0; leaves];
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let is_left = self.comes_before(left, right)?;
            (winners[node], self.tree[node]) = if is_left { (left, right) } else { (right, left) };
        }
        self.tree[0] = winners[1];
        Ok(())
    }

    /// Plays the games of a run that has another row.
    fn replay(&mut self, run: usize) -> Result<()> {
        let (mut winner, mut node) = (run, usize::midpoint(self.runs.len(), run));
        while 0 < node {
            if self.comes_before(self.tree[node], winner)? {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
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
                compare::rows(&self.spec.keys, columns(left), x, columns(right), y)?
            }
            order => order,
        };
        Ok(order.then(x.cmp(&y)).is_lt())
    }
}
