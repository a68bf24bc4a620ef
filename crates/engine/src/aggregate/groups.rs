//! The groups of one worker, and of all of them together.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::AggregateSpec;
use super::carried::Carried;
use super::keys::{KeyForm, Words};
use super::sets::{GroupingSet, Level};
use super::state::{Kept, State, ints};
use super::table::Table;
use super::totals::Rows;
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Form, GOES_ON, Result, unless_stopped};

/// Groups and what is kept of them. Gives one row for each group: its keys, what they determine, then its states.
#[derive(Debug)]
pub struct Groups {
    pub(super) spec: Arc<AggregateSpec>,
    pub(super) keys: Vec<KeyForm>,
    /// Made with the first batch, whose forms say how many words keys have.
    pub(super) table: Option<Table>,
    pub(super) carried: Vec<Carried>,
    pub(super) states: Vec<State>,
    rows: usize,
    groups: Vec<u32>,
    /// Groups that other stretches of rows may have too, of stretches that have ended.
    border: Option<Box<Groups>>,
    /// What rows without NULLs have for NULLs, as many as a batch ever had rows.
    zeros: Arc<Vec<i64>>,
}

/// Groups whose table is filled, to be given in parts.
#[derive(Debug)]
pub struct GroupRows {
    /// Those of one set each.
    pub(super) parts: Vec<Batch>,
}

impl Groups {
    /// No groups yet.
    #[must_use]
    pub fn new(spec: &Arc<AggregateSpec>) -> Self {
        let keys = spec.keys.iter().map(|_| KeyForm::default()).collect();
        let carried = spec.carried.iter().map(|_| Carried::default()).collect();
        let states = spec.states.iter().map(|state| State::new(state.kept)).collect();
        let (spec, groups, zeros) = (Arc::clone(spec), Vec::new(), Arc::default());
        Self { spec, keys, table: None, carried, states, rows: 0, groups, border: None, zeros }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// Where the forms of columns change, or a sum goes beyond 128 bits.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        for (form, key) in self.keys.iter_mut().zip(&self.spec.keys) {
            form.take(&batch.columns[*key].data);
        }
        let words = self.words(batch)?;
        let stride = words.len();
        let table = self.table.get_or_insert_with(|| Table::new(stride));
        let before = table.len();
        table.groups_of(&words, batch.rows, self.rows, &mut self.groups);
        self.rows += batch.rows;
        let (groups, rows) = (table.len(), Rows::new(&self.groups));
        if before < groups && !self.carried.is_empty() {
            let first = firsts(&self.groups, before);
            for (carried, column) in self.carried.iter_mut().zip(&self.spec.carried) {
                carried.add(&batch.columns[*column], &first)?;
            }
        }
        for (state, spec) in self.states.iter_mut().zip(&self.spec.states) {
            state.resize(groups);
            let column = spec.column.map(|column| &batch.columns[column]);
            let counts = counts(column, spec.filter.map(|filter| &batch.columns[filter]))?;
            state.add(&rows, column, counts.as_deref())?;
        }
        Ok(())
    }

    /// The words of the rows' keys, the last of them the NULLs among the others.
    fn words(&mut self, batch: &Batch) -> Result<Vec<Words>> {
        if self.spec.keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut words = Vec::with_capacity(self.keys.len() + 1);
        let mut nulls: Option<Vec<i64>> = None;
        for (at, (form, key)) in self.keys.iter_mut().zip(&self.spec.keys).enumerate() {
            let column = &batch.columns[*key];
            words.extend(form.of(column)?);
            if let Some(valid) = &column.validity {
                let nulls = nulls.get_or_insert_with(|| vec![0; batch.rows]);
                nulls.iter_mut().enumerate().for_each(|(row, bits)| *bits |= i64::from(!valid.get(row)) << at);
            }
        }
        let bounds =
            if nulls.is_some() { Bounds { min: 0, max: (1 << self.keys.len().min(63)) - 1 } } else { Bounds::of(0) };
        if self.zeros.len() < batch.rows {
            self.zeros = Arc::new(vec![0; batch.rows]);
        }
        let values = nulls.map_or_else(|| Arc::clone(&self.zeros), Arc::new);
        words.push(Words { values, bounds: Some(bounds) });
        Ok(words)
    }

    /// What it takes in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::memory_bytes)
            + self.border.as_ref().map_or(0, |border| border.memory_bytes())
            + self.keys.iter().map(KeyForm::memory_bytes).sum::<usize>()
            + self.carried.iter().map(Carried::memory_bytes).sum::<usize>()
            + self.states.iter().map(State::memory_bytes).sum::<usize>()
    }

    /// How many groups there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.as_ref().map_or_else(|| usize::from(self.spec.keys.is_empty()), Table::len)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the groups of another worker.
    ///
    /// # Errors
    /// As [`Groups::add`]; [`Error::Stopped`] once `stop` is set.
    pub fn merge(&mut self, other: Self, stop: &AtomicBool) -> Result<()> {
        let other = other.whole()?;
        if self.table.is_none() {
            let border = self.border.take();
            *self = other;
            self.border = border;
            return Ok(());
        }
        let all: Vec<u32> = (0..).take(other.len()).collect();
        self.merge_some(&other, &all, stop)
    }

    /// Adds some of another's groups, whose keys have the words of this one's afterwards.
    pub(super) fn merge_some(&mut self, other: &Self, some: &[u32], stop: &AtomicBool) -> Result<()> {
        let Some(theirs) = &other.table else { return Ok(()) };
        let stride = theirs.stride();
        let mut words = theirs.words_of(some);
        let mut at = 0;
        for (number, (mine, form)) in self.keys.iter_mut().zip(&other.keys).enumerate() {
            mine.translate(form, &mut words, stride, at, |nulls| nulls >> number & 1 == 1)?;
            at += mine.words();
        }
        let table = self.table.get_or_insert_with(|| Table::new(stride));
        let before = table.len();
        let mut found = Vec::with_capacity(some.len());
        let mut part = Vec::new();
        for start in (0..some.len()).step_by(BATCH_ROWS) {
            unless_stopped(stop)?;
            let end = some.len().min(start + BATCH_ROWS);
            let column = |at: usize| {
                let values: Vec<i64> = (start..end).map(|group| words[group * stride + at]).collect();
                let bounds = values.iter().fold(None, |bounds: Option<Bounds>, value| {
                    let one = Bounds::of((*value).into());
                    Some(bounds.map_or(one, |bounds| bounds.or(one)))
                });
                Words { values: Arc::new(values), bounds }
            };
            let words: Vec<Words> = (0..stride).map(column).collect();
            table.groups_of(&words, end - start, self.rows + start, &mut part);
            found.extend_from_slice(&part);
        }
        self.rows += (other.rows as u128 * some.len() as u128 / theirs.len().max(1) as u128) as usize;
        let count = table.len();
        let new: Vec<u32> = firsts(&found, before).into_iter().map(|at| some[at as usize]).collect();
        for (mine, theirs) in self.carried.iter_mut().zip(&other.carried) {
            mine.merge(theirs, &new)?;
        }
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.resize(count);
            mine.merge(&found, theirs, some)?;
        }
        Ok(())
    }

    /// Ends a stretch of rows. Gives the groups that no other stretch has, which are forgotten; `None` where the key has no order here or
    /// there are no such groups.
    ///
    /// # Errors
    /// As [`Groups::finish`].
    pub fn end_stretch(&mut self) -> Result<Option<GroupRows>> {
        let (Some(key), Some(table)) = (self.spec.clustered, &self.table) else { return Ok(None) };
        if !self.keys.get(key).is_some_and(KeyForm::is_integer) {
            return Ok(None);
        }
        let at: usize = self.keys[..key].iter().map(KeyForm::words).sum();
        let keys = || table.words().iter().skip(at).step_by(table.stride()).copied();
        let (min, max) = keys().fold((i64::MAX, i64::MIN), |(min, max), key| (min.min(key), max.max(key)));
        let (mut inner, mut outer) = (Vec::with_capacity(table.len()), Vec::new());
        for (group, key) in (0_u32..).zip(keys()) {
            if min < key && key < max { inner.push(group) } else { outer.push(group) }
        }
        let mut border = self.border.take().unwrap_or_else(|| Box::new(Self::new(&self.spec)));
        let next = Self::new(&self.spec);
        let ended = std::mem::replace(self, next);
        self.zeros = Arc::clone(&ended.zeros);
        border.merge_some(&ended, &outer, &GOES_ON)?;
        self.border = Some(border);
        if inner.is_empty() {
            return Ok(None);
        }
        ended.finish()?.selected(&inner).map(Some)
    }

    /// With the groups at the borders of stretches that have ended.
    pub(super) fn whole(mut self) -> Result<Self> {
        match self.border.take() {
            None => Ok(self),
            Some(mut border) => {
                border.merge(self, &GOES_ON)?;
                Ok(*border)
            }
        }
    }

    /// One row for each group. Without keys there is one, also of no rows.
    ///
    /// # Errors
    /// None that well-formed groups meet.
    pub fn finish(self) -> Result<GroupRows> {
        let this = self.whole()?;
        if let (Some(id), true) = (this.spec.total, this.is_empty()) {
            return total_of_none(&this.spec, id);
        }
        let finest = Level::finest(this.keys.len(), this.table, this.states);
        if !this.spec.sets.is_empty() {
            return rows_of_sets(&this.keys, &this.spec, finest);
        }
        let rows = finest.groups();
        let mut columns = finest.columns(&this.keys)?;
        let carried = this.carried.iter().map(Carried::column).collect::<Result<Vec<_>>>()?;
        columns.splice(this.keys.len()..this.keys.len(), carried);
        Ok(GroupRows { parts: vec![Batch { rows, columns }] })
    }
}

/// The one group of the set without keys, where no row is.
fn total_of_none(spec: &AggregateSpec, id: i64) -> Result<GroupRows> {
    let mut columns = vec![Form::Ints.nulls(1); spec.keys.len()];
    if let Some(number) = columns.last_mut() {
        *number = ints(vec![id]);
    }
    columns.extend(spec.carried.iter().map(|_| Form::Ints.nulls(1)));
    for state in &spec.states {
        columns.push(State::new(state.kept).column(1)?);
    }
    Ok(GroupRows { parts: vec![Batch { rows: 1, columns }] })
}

/// The groups of each set, made of the fewest that it can be made of.
fn rows_of_sets(keys: &[KeyForm], spec: &AggregateSpec, finest: Level) -> Result<GroupRows> {
    let kept: Vec<Kept> = spec.states.iter().map(|state| state.kept).collect();
    let mut levels: Vec<(Level, &GroupingSet)> = Vec::with_capacity(spec.sets.len());
    let mut order: Vec<&GroupingSet> = spec.sets.iter().collect();
    order.sort_by_key(|set| set.absent.iter().filter(|absent| **absent).count());
    let Some((all, coarser)) = order.split_first().filter(|(all, _)| !all.absent.contains(&true)) else {
        return Err(Error::Form("grouping sets without one of all keys"));
    };
    levels.push((finest, all));
    for set in coarser {
        let finer = levels.iter().map(|(level, _)| level).filter(|level| level.has(&set.absent));
        let finer = finer.min_by_key(|level| level.groups()).ok_or(Error::Form("a grouping set"))?;
        let level = finer.coarser(keys, &kept, &set.absent)?;
        levels.push((level, set));
    }
    levels.retain(|(_, set)| !set.is_hidden);
    let parts = levels.into_iter().map(|(level, set)| {
        let rows = level.groups();
        let mut columns = level.columns(keys)?;
        let ids = Data::Ints { values: Arc::new(vec![set.id; rows]), bounds: Bounds::of(set.id.into()) };
        columns.insert(keys.len(), Column::new(ids));
        Ok(Batch { rows, columns })
    });
    Ok(GroupRows { parts: parts.collect::<Result<_>>()? })
}

impl GroupRows {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// What they take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.parts.iter().flat_map(|part| &part.columns).map(Column::memory_bytes).sum()
    }

    /// Some of the rows, where they are in one piece.
    fn selected(&self, rows: &[u32]) -> Result<Self> {
        let parts = self.parts.iter().map(|part| {
            let columns = part.columns.iter().map(|column| column.take(rows)).collect::<Result<_>>()?;
            Ok(Batch { rows: rows.len(), columns })
        });
        Ok(Self { parts: parts.collect::<Result<_>>()? })
    }

    /// The rows by batches, counted from 0; `None` after the last.
    #[must_use]
    pub fn batch(&self, number: usize) -> Option<Batch> {
        let mut number = number;
        for part in &self.parts {
            let batches = part.rows.div_ceil(BATCH_ROWS);
            if number < batches {
                let (start, end) = (number * BATCH_ROWS, part.rows.min((number + 1) * BATCH_ROWS));
                let columns = part.columns.iter().map(|column| column.slice(start, end)).collect();
                return Some(Batch { rows: end - start, columns });
            }
            number -= batches;
        }
        None
    }
}

/// Where the groups from a number on, which are in the order of their first rows, begin.
fn firsts(groups: &[u32], number: usize) -> Vec<u32> {
    let mut next = u32::try_from(number).expect("fewer than 2^32 groups");
    let mut firsts = Vec::new();
    for (row, group) in (0..).zip(groups) {
        if *group == next {
            firsts.push(row);
            next += 1;
        }
    }
    firsts
}

/// The rows that count; `None` for all of them.
fn counts(column: Option<&Column>, filter: Option<&Column>) -> Result<Option<Arc<Bits>>> {
    let valid = column.and_then(|column| column.validity.clone());
    let Some(filter) = filter else { return Ok(valid) };
    let Data::Bools(bits) = &filter.data else { return Err(Error::Form("a filter that is no truth value")) };
    let passing = filter.validity.as_ref().map_or_else(|| Arc::clone(bits), |known| Arc::new(known.and(bits)));
    Ok(Some(valid.map_or_else(|| Arc::clone(&passing), |valid| Arc::new(valid.and(&passing)))))
}
