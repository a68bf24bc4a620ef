//! Hash aggregation of one worker, which other workers' groups can be merged into.

use std::sync::Arc;

use super::AggregateSpec;
use super::carried::Carried;
use super::divided::Divided;
use super::keys::{KeyForm, Words};
use super::merge::firsts;
use super::pieces::{Aside, Piece};
use super::reduction::{FEW_GROUPS, Reduction};
use super::sets::{GroupingSet, Level, finest_first};
use super::state::{Kept, State, ints};
use super::table::Table;
use super::totals::Rows;
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Form, GOES_ON, Result};

/// Hash aggregation: finds the group of each row by its keys and updates the aggregate states of the groups.
///
/// The result has one row for each group: its keys, carried columns, then states.
#[derive(Debug)]
pub struct Groups {
    pub(super) spec: Arc<AggregateSpec>,
    pub(super) keys: Vec<KeyForm>,
    /// Table from keys to groups; created with the first batch, whose forms determine the number of words of a key.
    pub(super) table: Option<Table>,
    pub(super) carried: Vec<Carried>,
    pub(super) states: Vec<State>,
    /// Input rows that the table has aggregated since it was created or last flushed.
    pub(super) rows: usize,
    /// Group of each row of the last batch; a buffer.
    groups: Vec<u32>,
    /// Groups that have been flushed from the table to radix partitions; a group may be in several runs.
    pub(super) pieces: Vec<Piece>,
    /// Groups that merged workers have flushed.
    pub(super) others: Vec<Aside>,
    /// Memory of `pieces` and `others`, in bytes.
    pub(super) aside_bytes: usize,
    pub(super) reduction: Reduction,
    /// Groups of finished runs of clustered rows that other runs may have as well.
    pub(super) border: Option<Box<Groups>>,
    /// Null words of a batch without NULL keys: zeros, as many as the largest batch so far had rows.
    zeros: Arc<Vec<i64>>,
}

/// Result rows of an aggregation, read batch by batch.
#[derive(Debug)]
pub struct GroupRows {
    /// Parts of the rows, each of one grouping set.
    pub(super) parts: Vec<Batch>,
}

impl Groups {
    /// Creates an aggregation without groups. Its table is flushed to radix partitions where it does not reduce rows.
    #[must_use]
    pub fn new(spec: &Arc<AggregateSpec>) -> Self {
        Self::looking_at(spec, FEW_GROUPS)
    }

    /// Creates an aggregation that never flushes its table.
    pub(super) fn all_in_one(spec: &Arc<AggregateSpec>) -> Self {
        Self::looking_at(spec, usize::MAX)
    }

    /// Creates an aggregation that first considers flushing its table at `few` groups; never if a key is clustered, as
    /// finished groups leave the table early then.
    pub(super) fn looking_at(spec: &Arc<AggregateSpec>, few: usize) -> Self {
        let reduction = Reduction::of(if spec.clustered.is_some() { usize::MAX } else { few });
        let form = |key: usize| spec.key_forms.get(key).map_or_else(KeyForm::default, |form| KeyForm::from(*form));
        let keys = (0..spec.keys.len()).map(form).collect();
        let carried = spec.carried.iter().map(|_| Carried::default()).collect();
        let states = spec.states.iter().map(|state| State::new(state.kept)).collect();
        let (spec, groups, zeros) = (Arc::clone(spec), Vec::new(), Arc::default());
        let (pieces, others) = (Vec::new(), Vec::new());
        let (table, border, rows, aside_bytes) = (None, None, 0, 0);
        Self { spec, keys, table, carried, states, rows, groups, pieces, others, aside_bytes, reduction, border, zeros }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// [`Error::Form`] if the forms of columns change; 22003 if a sum overflows.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        for (form, key) in self.keys.iter_mut().zip(&self.spec.keys) {
            form.take(&batch.columns[*key]);
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
        if self.reduction.is_due(groups) { self.look() } else { Ok(()) }
    }

    /// Flushes the table to radix partitions if it does not reduce rows and keys rarely repeat.
    fn look(&mut self) -> Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let groups = table.len();
        let has_texts = self.keys.iter().any(|key| key.texts().is_some());
        if !table.is_narrow(has_texts) && !self.reduction.reduces(self.rows, groups) {
            let hashes = self.hashes()?;
            self.reduction.learn(&hashes);
            if self.reduction.has_new(groups) {
                self.reduction.begin_again(groups);
                return self.put_table_aside(&hashes);
            }
        }
        self.reduction.go_on(self.rows, groups);
        Ok(())
    }

    /// Encodes the keys of the rows as columns of words; the last word has a bit for each key, set where it is NULL.
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

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, Table::memory_bytes)
            + self.border.as_ref().map_or(0, |border| border.memory_bytes())
            + self.keys.iter().map(KeyForm::memory_bytes).sum::<usize>()
            + self.carried.iter().map(Carried::memory_bytes).sum::<usize>()
            + self.states.iter().map(State::memory_bytes).sum::<usize>()
            + self.aside_bytes
    }

    /// Returns the number of groups; a group counts once more for each time that it was flushed.
    #[must_use]
    pub fn len(&self) -> usize {
        let others = self.others.iter().flat_map(|other| &other.pieces);
        let aside: usize = self.pieces.iter().chain(others).map(Piece::len).sum();
        aside + self.table.as_ref().map_or_else(|| usize::from(self.spec.keys.is_empty()), Table::len)
    }

    /// Returns whether groups have been flushed to radix partitions.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        !self.pieces.is_empty() || !self.others.is_empty()
    }

    /// Returns whether there are no groups.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends a run of clustered rows: removes and returns the groups that no other run can have. `None` if no key is
    /// clustered, the clustered key is not an integer, or there are no such groups.
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

    /// Returns the result: one row for each group. Without keys there is one group even if there were no rows.
    ///
    /// # Errors
    /// 22003 if a sum overflows when groups are merged; otherwise internal errors only.
    pub fn finish(self) -> Result<GroupRows> {
        let this = self.whole()?;
        if this.is_aside() {
            let spec = Arc::clone(&this.spec);
            return Divided::of(&spec, this.put_aside()?)?.all(&spec, &GOES_ON);
        }
        if let (Some(id), true) = (this.spec.total, this.is_empty()) {
            return total_of_none(&this.spec, id);
        }
        let finest = Level::finest(this.keys.len(), this.table, this.carried, this.states);
        if !this.spec.sets.is_empty() {
            return rows_of_sets(&this.keys, &this.spec, finest);
        }
        Ok(GroupRows { parts: vec![finest.rows(&this.keys, None)?] })
    }
}

/// Returns the grand total of no rows, for the grouping set `id`.
fn total_of_none(spec: &AggregateSpec, id: i64) -> Result<GroupRows> {
    let form = |key: usize| spec.key_forms.get(key).copied().unwrap_or(Form::Ints);
    let mut columns: Vec<Column> = (0..spec.keys.len()).map(|key| form(key).nulls(1)).collect();
    if let Some(number) = columns.last_mut() {
        *number = ints(vec![id]);
    }
    columns.extend(spec.carried.iter().map(|_| Form::Ints.nulls(1)));
    for state in &spec.states {
        columns.push(State::new(state.kept).column(1)?);
    }
    Ok(GroupRows { parts: vec![Batch { rows: 1, columns }] })
}

/// Evaluates the grouping sets: each is derived from the smallest finer set that has been evaluated.
fn rows_of_sets(keys: &[KeyForm], spec: &AggregateSpec, finest: Level) -> Result<GroupRows> {
    let kept: Vec<Kept> = spec.states.iter().map(|state| state.kept).collect();
    let (all, coarser) = finest_first(&spec.sets)?;
    let mut levels: Vec<(Level, &GroupingSet)> = vec![(finest, all)];
    for set in coarser {
        let finer = levels.iter().filter(|(_, finer)| finer.has(&set.absent)).map(|(level, _)| level);
        let finer =
            finer.min_by_key(|level| level.groups()).ok_or(Error::Form("a grouping set without a finer set"))?;
        let level = finer.coarser(keys, &kept, &set.absent)?;
        levels.push((level, set));
    }
    levels.retain(|(_, set)| !set.is_hidden);
    let parts = levels.into_iter().map(|(level, set)| level.rows(keys, Some(set.id)));
    Ok(GroupRows { parts: parts.collect::<Result<_>>()? })
}

impl GroupRows {
    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.parts.iter().flat_map(|part| &part.columns).map(Column::memory_bytes).sum()
    }

    /// Selects some rows; all rows must be in one part.
    fn selected(&self, rows: &[u32]) -> Result<Self> {
        let parts = self.parts.iter().map(|part| {
            let columns = part.columns.iter().map(|column| column.take(rows)).collect::<Result<_>>()?;
            Ok(Batch { rows: rows.len(), columns })
        });
        Ok(Self { parts: parts.collect::<Result<_>>()? })
    }

    /// Returns the batch with this number, counted from 0; `None` after the last.
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

/// Returns the rows that are aggregated: those whose value is not NULL and whose filter is true; `None` if these are
/// all rows.
fn counts(column: Option<&Column>, filter: Option<&Column>) -> Result<Option<Arc<Bits>>> {
    let valid = column.and_then(|column| column.validity.clone());
    let Some(filter) = filter else { return Ok(valid) };
    let Data::Bools(bits) = &filter.data else { return Err(Error::Form("a FILTER column that is not boolean")) };
    let passing = filter.validity.as_ref().map_or_else(|| Arc::clone(bits), |known| Arc::new(known.and(bits)));
    Ok(Some(valid.map_or_else(|| Arc::clone(&passing), |valid| Arc::new(valid.and(&passing)))))
}
