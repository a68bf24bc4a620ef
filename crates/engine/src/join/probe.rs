//! Batches of the probe side go through the table.

use std::sync::Arc;

use super::encoding::Remembered;
use super::output::{Pairs, probe_column};
use super::{JoinKind, JoinTable, NONE, OutputColumn, Residual};
use crate::{BATCH_ROWS, Batch, Bits, Column, Data, Error, Result};

/// What a worker keeps between the batches that it probes with.
#[derive(Debug, Default)]
pub struct ProbeScratch {
    /// The table that it was last used with.
    table: u64,
    seen: Vec<Remembered>,
    words: Vec<u64>,
    /// Each row's group.
    found: Vec<u32>,
    open: Vec<u32>,
    probe_rows: Vec<u32>,
    build_rows: Vec<u32>,
}

/// Probe rows without a match: whether they make pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unmatched {
    Left,
    Paired,
}

/// Takes pairs, the probe rows and the build rows, which it may take some away from.
type TakePairs<'a> = dyn FnMut(&mut Vec<u32>, &mut Vec<u32>) -> Result<()> + 'a;

/// Takes output batches.
type Next<'a> = dyn FnMut(Batch) -> Result<()> + 'a;

impl JoinTable {
    /// Joins a batch, gives output batches of up to about [`BATCH_ROWS`] rows to `next`, whose error stops it.
    ///
    /// # Errors
    /// Those of `next` and of the condition, and where columns have other forms than the build side's keys.
    pub fn probe(&self, batch: &Batch, scratch: &mut ProbeScratch, next: &mut Next<'_>) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if batch.columns.iter().any(|column| column.rows() != batch.rows) || u32::try_from(batch.rows).is_err() {
            return Err(Error::Form("a batch of a join's probe side has columns of other lengths"));
        }
        self.find(batch, scratch)?;
        let ProbeScratch { found, probe_rows, build_rows, .. } = scratch;
        match (&self.spec.residual, self.spec.kind) {
            (Some(residual), kind) if kind.gives_pairs() => {
                self.fulfilling_pairs(residual, batch, found, probe_rows, build_rows, next)
            }
            (Some(residual), JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark) => {
                self.mark_fulfilling(residual, batch, found, probe_rows, build_rows)
            }
            (Some(residual), _) => {
                let matched = self.first_fulfilling(residual, batch, found, probe_rows, build_rows)?;
                self.probe_rows(batch, matched, next)
            }
            (None, JoinKind::LeftSemi | JoinKind::LeftAnti | JoinKind::LeftMark) => {
                self.mark_groups(found);
                Ok(())
            }
            (None, JoinKind::RightMark) => self.probe_rows(batch, Bits::of(batch.rows, |row| found[row] != NONE), next),
            (None, kind @ (JoinKind::RightSemi | JoinKind::RightAnti)) => {
                probe_rows.resize(found.len(), 0);
                let mut count = 0;
                for (row, group) in (0..).zip(&*found) {
                    probe_rows[count] = row;
                    count += usize::from((*group == NONE) == (kind == JoinKind::RightAnti));
                }
                self.some_probe_rows(batch, &probe_rows[..count], &Arc::default(), next)
            }
            (None, _) if self.groups.are_unique() => self.single(batch, found, probe_rows, build_rows, next),
            (None, _) => self.all_pairs(batch, found, probe_rows, build_rows, next),
        }
    }

    /// The groups of the rows' keys.
    fn find(&self, batch: &Batch, scratch: &mut ProbeScratch) -> Result<()> {
        if scratch.table != self.id {
            scratch.table = self.id;
            scratch.seen.clear();
        }
        let ProbeScratch { seen, words, found, open, .. } = scratch;
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
        if let Some((values, least)) = self.words.plain(batch, positions) {
            let values = &values[..batch.rows];
            self.index.find(batch.rows, |row| values[row].wrapping_sub(least).cast_unsigned(), found, open);
        } else {
            self.words.of_batch(batch, positions, seen, words)?;
            let words = &words[..batch.rows];
            self.index.find(batch.rows, |row| words[row], found, open);
        }
        Ok(())
    }

    /// Pairs where a probe row has at most one match.
    fn single(
        &self,
        batch: &Batch,
        found: &mut [u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut Next<'_>,
    ) -> Result<()> {
        let misses = found.iter().filter(|group| **group == NONE).count();
        let pairs = if misses == 0 {
            self.groups.put_rows(found);
            Pairs { probe: batch, probe_rows: None, build_rows: found }
        } else if self.spec.kind.keeps_probe_rows() {
            for group in found.iter_mut().filter(|group| **group != NONE) {
                *group = self.groups.rows(*group).start;
            }
            Pairs { probe: batch, probe_rows: None, build_rows: found }
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
            self.groups.put_rows(build_rows);
            Pairs { probe: batch, probe_rows: Some(&probe_rows[..count]), build_rows }
        };
        self.mark(pairs.build_rows);
        next(self.pairs(&self.spec.output, &pairs)?)
    }

    /// Pairs where a probe row may have many matches.
    fn all_pairs(
        &self,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut Next<'_>,
    ) -> Result<()> {
        let unmatched = if self.spec.kind.keeps_probe_rows() { Unmatched::Paired } else { Unmatched::Left };
        self.each_pairs(found, unmatched, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            self.mark(build_rows);
            let pairs = Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows };
            next(self.pairs(&self.spec.output, &pairs)?)
        })
    }

    /// Pairs that fulfil a condition.
    fn fulfilling_pairs(
        &self,
        residual: &Residual,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        next: &mut Next<'_>,
    ) -> Result<()> {
        let mut matched = Bits::all(batch.rows, false);
        self.each_pairs(found, Unmatched::Left, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            self.fulfilling(residual, batch, probe_rows, build_rows)?;
            if build_rows.is_empty() {
                return Ok(());
            }
            self.mark(build_rows);
            if self.spec.kind.keeps_probe_rows() {
                probe_rows.iter().for_each(|row| matched.set(*row as usize));
            }
            let pairs = Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows };
            next(self.pairs(&self.spec.output, &pairs)?)
        })?;
        if !self.spec.kind.keeps_probe_rows() || matched.count() == batch.rows {
            return Ok(());
        }
        let alone: Vec<u32> = matched.not().ones().map(|row| row as u32).collect();
        let pairs = Pairs { probe: batch, probe_rows: Some(&alone), build_rows: &vec![NONE; alone.len()] };
        next(self.pairs(&self.spec.output, &pairs)?)
    }

    /// Marks the build rows of groups that were found.
    fn mark_groups(&self, found: &[u32]) {
        let Some(marks) = &self.marks else { return };
        for group in found.iter().filter(|group| **group != NONE) {
            // A group's rows are all marked by the one who marks its first.
            let rows = self.groups.rows(*group);
            if !marks.get(rows.start) {
                rows.for_each(|row| marks.set(row));
            }
        }
    }

    /// Marks the build rows of pairs that fulfil a condition; asks only about those not marked yet.
    fn mark_fulfilling(
        &self,
        residual: &Residual,
        batch: &Batch,
        found: &[u32],
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        let Some(marks) = &self.marks else { return Ok(()) };
        self.each_pairs(found, Unmatched::Left, probe_rows, build_rows, &mut |probe_rows, build_rows| {
            retain(probe_rows, build_rows, |pair, build_rows| !marks.get(build_rows[pair]));
            self.fulfilling(residual, batch, probe_rows, build_rows)?;
            self.mark(build_rows);
            Ok(())
        })
    }

    /// The probe rows with a match that fulfils a condition. Asks about few matches of each row first: most often they decide.
    fn first_fulfilling(
        &self,
        residual: &Residual,
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
                self.fulfilling(residual, batch, probe_rows, build_rows)?;
                probe_rows.iter().for_each(|row| matched.set(*row as usize));
            }
            asked += at_once;
            at_once = (at_once * 4).min(BATCH_ROWS);
            open.retain(|row| !matched.get(*row as usize) && self.groups.rows(found[*row as usize]).len() > asked);
        }
        Ok(matched)
    }

    /// Gives the probe rows that a kind gives of those that have a match or have none.
    fn probe_rows(&self, batch: &Batch, matched: Bits, next: &mut Next<'_>) -> Result<()> {
        let given = match self.spec.kind {
            JoinKind::RightSemi => matched.clone(),
            JoinKind::RightAnti => matched.not(),
            _ => Bits::all(batch.rows, true),
        };
        let rows: Vec<u32> = given.ones().map(|row| row as u32).collect();
        self.some_probe_rows(batch, &rows, &Arc::new(matched), next)
    }

    /// Gives these probe rows, the marks where they are all.
    fn some_probe_rows(&self, batch: &Batch, rows: &[u32], marks: &Arc<Bits>, next: &mut Next<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let some = (rows.len() < batch.rows).then_some(rows);
        let column = |column: &OutputColumn| match *column {
            OutputColumn::Probe(position) => probe_column(batch, position, some),
            OutputColumn::Mark => Ok(Column::new(Data::Bools(Arc::clone(marks)))),
            OutputColumn::Build(_) => Err(Error::Form("a column of a join's build side")),
        };
        next(Batch { rows: rows.len(), columns: self.spec.output.iter().map(column).collect::<Result<_>>()? })
    }

    /// Keeps the pairs that fulfil a condition.
    fn fulfilling(
        &self,
        residual: &Residual,
        batch: &Batch,
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
    ) -> Result<()> {
        if build_rows.is_empty() {
            return Ok(());
        }
        let pairs = Pairs { probe: batch, probe_rows: Some(probe_rows), build_rows };
        let is_true = (residual.is_true)(&self.pairs(&residual.columns, &pairs)?)?;
        if is_true.rows() != build_rows.len() {
            return Err(Error::Form("a condition's answers are not as many as its rows"));
        }
        if is_true.count() < is_true.rows() {
            retain(probe_rows, build_rows, |pair, _| is_true.get(pair));
        }
        Ok(())
    }

    /// Gives all pairs, about [`BATCH_ROWS`] at once.
    fn each_pairs(
        &self,
        found: &[u32],
        unmatched: Unmatched,
        probe_rows: &mut Vec<u32>,
        build_rows: &mut Vec<u32>,
        take: &mut TakePairs<'_>,
    ) -> Result<()> {
        probe_rows.clear();
        build_rows.clear();
        for (row, group) in (0..).zip(found) {
            if *group == NONE {
                if unmatched == Unmatched::Left {
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
                    take(probe_rows, build_rows)?;
                    probe_rows.clear();
                    build_rows.clear();
                    rows.start = now.end;
                }
                probe_rows.extend(std::iter::repeat_n(row, rows.len()));
                build_rows.extend(rows);
            }
            if build_rows.len() >= BATCH_ROWS {
                take(probe_rows, build_rows)?;
                probe_rows.clear();
                build_rows.clear();
            }
        }
        if build_rows.is_empty() { Ok(()) } else { take(probe_rows, build_rows) }
    }

    /// Marks build rows of pairs, if anything is asked about them afterwards.
    fn mark(&self, build_rows: &[u32]) {
        if let Some(marks) = &self.marks {
            build_rows.iter().filter(|row| **row != NONE).for_each(|row| marks.set(*row));
        }
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
