//! Hash aggregation of one worker, which other workers' groups can be merged into.

use std::sync::Arc;

use super::AggregateSpec;
use super::aggregate_state::{AggregateKind, State, int_column};
use super::carried_columns::CarriedColumn;
use super::flush_decision::{CACHED_TABLE_GROUPS, ReductionStats};
use super::flushed_groups::{FlushedGroups, FlushedRun};
use super::group_table::GroupTable;
use super::grouping_sets::{GroupingSet, SetGroups, sort_finest_first};
use super::key_encoding::{KeyEncoding, KeyWords};
use super::merge_groups::first_rows;
use super::partitioned_merge::PartitionedGroups;
use super::sums::RowGroups;
use crate::{BATCH_ROWS, Batch, Bitmap, Bounds, Column, ColumnData, Error, NEVER_STOPPED, PhysicalType, Result};

/// Hash aggregation: finds the group of each row by its keys and updates the aggregate states of the groups.
///
/// The result has one row for each group: its keys, carried columns, then states.
#[derive(Debug)]
pub struct Groups {
    pub(super) spec: Arc<AggregateSpec>,
    pub(super) keys: Vec<KeyEncoding>,
    /// Table from keys to groups; created with the first batch, whose forms determine the number of words of a key.
    pub(super) table: Option<GroupTable>,
    pub(super) carried: Vec<CarriedColumn>,
    pub(super) states: Vec<State>,
    /// Input rows that the table has aggregated since it was created or last flushed.
    pub(super) table_rows: usize,
    /// Group of each row of the last batch; a buffer.
    group_ids: Vec<u32>,
    /// Groups that have been flushed from the table to radix partitions; a group may be in several runs.
    pub(super) flushed_runs: Vec<FlushedRun>,
    /// Groups that merged workers have flushed.
    pub(super) merged_flushed: Vec<FlushedGroups>,
    /// Memory of `flushed_runs` and `merged_flushed`, in bytes.
    pub(super) flushed_bytes: usize,
    pub(super) reduction: ReductionStats,
    /// Groups of finished runs of clustered rows that other runs may have as well.
    pub(super) border_groups: Option<Box<Groups>>,
    /// Null words of a batch without NULL keys: zeros, as many as the largest batch so far had rows.
    null_free_words: Arc<Vec<i64>>,
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
        Self::with_first_check(spec, CACHED_TABLE_GROUPS)
    }

    /// Creates an aggregation that never flushes its table.
    pub(super) fn without_flushing(spec: &Arc<AggregateSpec>) -> Self {
        Self::with_first_check(spec, usize::MAX)
    }

    /// Creates an aggregation that first considers flushing its table at `few` groups; never if a key is clustered, as
    /// finished groups leave the table early then.
    pub(super) fn with_first_check(spec: &Arc<AggregateSpec>, first_check: usize) -> Self {
        let reduction = ReductionStats::new(if spec.clustered.is_some() { usize::MAX } else { first_check });
        let form =
            |key: usize| spec.key_types.get(key).map_or_else(KeyEncoding::default, |form| KeyEncoding::from(*form));
        let keys = (0..spec.keys.len()).map(form).collect();
        let carried = spec.carried.iter().map(|_| CarriedColumn::default()).collect();
        let states = spec.states.iter().map(|state| State::new(state.kind)).collect();
        let (spec, groups, zeros) = (Arc::clone(spec), Vec::new(), Arc::default());
        let (pieces, others) = (Vec::new(), Vec::new());
        let (table, border, rows, aside_bytes) = (None, None, 0, 0);
        Self {
            spec,
            keys,
            table,
            carried,
            states,
            table_rows: rows,
            group_ids: groups,
            flushed_runs: pieces,
            merged_flushed: others,
            flushed_bytes: aside_bytes,
            reduction,
            border_groups: border,
            null_free_words: zeros,
        }
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// [`Error::Internal`] if the forms of columns change; 22003 if a sum overflows.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        for (form, key) in self.keys.iter_mut().zip(&self.spec.keys) {
            form.adopt_form(&batch.columns[*key]);
        }
        let words = self.encode_keys(batch)?;
        let stride = words.len();
        let table = self.table.get_or_insert_with(|| GroupTable::new(stride));
        let before = table.len();
        table.find_or_insert(&words, batch.rows, self.table_rows, &mut self.group_ids);
        self.table_rows += batch.rows;
        let (groups, rows) = (table.len(), RowGroups::new(&self.group_ids));
        if before < groups && !self.carried.is_empty() {
            let first = first_rows(&self.group_ids, before);
            for (carried, column) in self.carried.iter_mut().zip(&self.spec.carried) {
                carried.append(&batch.columns[*column], &first)?;
            }
        }
        for (state, spec) in self.states.iter_mut().zip(&self.spec.states) {
            state.resize(groups);
            let column = spec.column.map(|column| &batch.columns[column]);
            let counts = counted_rows(column, spec.filter.map(|filter| &batch.columns[filter]))?;
            state.add(&rows, column, counts.as_deref())?;
        }
        if self.reduction.is_check_due(groups) { self.flush_unless_reducing() } else { Ok(()) }
    }

    /// Flushes the table to radix partitions if it does not reduce rows and keys rarely repeat.
    fn flush_unless_reducing(&mut self) -> Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let groups = table.len();
        let has_texts = self.keys.iter().any(|key| key.numbered_texts().is_some());
        if !table.fits_cached_direct_index(has_texts) && !self.reduction.reduces(self.table_rows, groups) {
            let hashes = self.partition_hashes()?;
            self.reduction.sample(&hashes);
            if self.reduction.keys_rarely_repeat(groups) {
                self.reduction.record_flush(groups);
                return self.flush_table(&hashes);
            }
        }
        self.reduction.defer_check(self.table_rows, groups);
        Ok(())
    }

    /// Encodes the keys of the rows as columns of words; the last word has a bit for each key, set where it is NULL.
    fn encode_keys(&mut self, batch: &Batch) -> Result<Vec<KeyWords>> {
        if self.spec.keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut words = Vec::with_capacity(self.keys.len() + 1);
        let mut nulls: Option<Vec<i64>> = None;
        for (at, (form, key)) in self.keys.iter_mut().zip(&self.spec.keys).enumerate() {
            let column = &batch.columns[*key];
            words.extend(form.encode(column)?);
            if let Some(valid) = &column.validity {
                let nulls = nulls.get_or_insert_with(|| vec![0; batch.rows]);
                nulls.iter_mut().enumerate().for_each(|(row, bits)| *bits |= i64::from(!valid.get(row)) << at);
            }
        }
        let bounds = if nulls.is_some() {
            Bounds { min: 0, max: (1 << self.keys.len().min(63)) - 1 }
        } else {
            Bounds::from_value(0)
        };
        if self.null_free_words.len() < batch.rows {
            self.null_free_words = Arc::new(vec![0; batch.rows]);
        }
        let values = nulls.map_or_else(|| Arc::clone(&self.null_free_words), Arc::new);
        words.push(KeyWords { values, bounds: Some(bounds) });
        Ok(words)
    }

    /// Returns the approximate memory use in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.table.as_ref().map_or(0, GroupTable::memory_bytes)
            + self.border_groups.as_ref().map_or(0, |border| border.memory_bytes())
            + self.keys.iter().map(KeyEncoding::memory_bytes).sum::<usize>()
            + self.carried.iter().map(CarriedColumn::memory_bytes).sum::<usize>()
            + self.states.iter().map(State::memory_bytes).sum::<usize>()
            + self.flushed_bytes
    }

    /// Returns the number of groups; a group counts once more for each time that it was flushed.
    #[must_use]
    pub fn len(&self) -> usize {
        let others = self.merged_flushed.iter().flat_map(|other| &other.runs);
        let aside: usize = self.flushed_runs.iter().chain(others).map(FlushedRun::len).sum();
        aside + self.table.as_ref().map_or_else(|| usize::from(self.spec.keys.is_empty()), GroupTable::len)
    }

    /// Returns whether groups have been flushed to radix partitions.
    #[must_use]
    pub fn has_flushed(&self) -> bool {
        !self.flushed_runs.is_empty() || !self.merged_flushed.is_empty()
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
    pub fn end_run(&mut self) -> Result<Option<GroupRows>> {
        let (Some(key), Some(table)) = (self.spec.clustered, &self.table) else { return Ok(None) };
        if !self.keys.get(key).is_some_and(KeyEncoding::is_integer) {
            return Ok(None);
        }
        let at: usize = self.keys[..key].iter().map(KeyEncoding::word_count).sum();
        let keys = || table.key_words().iter().skip(at).step_by(table.stride()).copied();
        let (min, max) = keys().fold((i64::MAX, i64::MIN), |(min, max), key| (min.min(key), max.max(key)));
        let (mut inner, mut outer) = (Vec::with_capacity(table.len()), Vec::new());
        for (group, key) in (0_u32..).zip(keys()) {
            if min < key && key < max { inner.push(group) } else { outer.push(group) }
        }
        let mut border = self.border_groups.take().unwrap_or_else(|| Box::new(Self::new(&self.spec)));
        let next = Self::new(&self.spec);
        let ended = std::mem::replace(self, next);
        self.null_free_words = Arc::clone(&ended.null_free_words);
        border.merge_groups(&ended, &outer, &NEVER_STOPPED)?;
        self.border_groups = Some(border);
        if inner.is_empty() {
            return Ok(None);
        }
        ended.finish()?.select(&inner).map(Some)
    }

    /// Returns the result: one row for each group. Without keys there is one group even if there were no rows.
    ///
    /// # Errors
    /// 22003 if a sum overflows when groups are merged; otherwise internal errors only.
    pub fn finish(self) -> Result<GroupRows> {
        let this = self.with_border_merged()?;
        if this.has_flushed() {
            let spec = Arc::clone(&this.spec);
            return PartitionedGroups::from_workers(&spec, this.flush_to_partitions()?)?
                .all_rows(&spec, &NEVER_STOPPED);
        }
        if let (Some(id), true) = (this.spec.grand_total_id, this.is_empty()) {
            return empty_grand_total(&this.spec, id);
        }
        let finest = SetGroups::new(this.keys.len(), this.table, this.carried, this.states);
        if !this.spec.sets.is_empty() {
            return evaluate_sets(&this.keys, &this.spec, finest);
        }
        Ok(GroupRows { parts: vec![finest.into_rows(&this.keys, None)?] })
    }
}

/// Returns the grand total of no rows, for the grouping set `id`.
fn empty_grand_total(spec: &AggregateSpec, id: i64) -> Result<GroupRows> {
    let form = |key: usize| spec.key_types.get(key).copied().unwrap_or(PhysicalType::Ints);
    let mut columns: Vec<Column> = (0..spec.keys.len()).map(|key| form(key).null_column(1)).collect();
    if let Some(number) = columns.last_mut() {
        *number = int_column(vec![id]);
    }
    columns.extend(spec.carried.iter().map(|_| PhysicalType::Ints.null_column(1)));
    for state in &spec.states {
        columns.push(State::new(state.kind).into_column(1)?);
    }
    Ok(GroupRows { parts: vec![Batch { rows: 1, columns }] })
}

/// Evaluates the grouping sets: each is derived from the smallest finer set that has been evaluated.
fn evaluate_sets(keys: &[KeyEncoding], spec: &AggregateSpec, finest: SetGroups) -> Result<GroupRows> {
    let kept: Vec<AggregateKind> = spec.states.iter().map(|state| state.kind).collect();
    let (all, coarser) = sort_finest_first(&spec.sets)?;
    let mut levels: Vec<(SetGroups, &GroupingSet)> = vec![(finest, all)];
    for set in coarser {
        let finer = levels.iter().filter(|(_, finer)| finer.can_derive(&set.absent_keys)).map(|(level, _)| level);
        let finer = finer
            .min_by_key(|level| level.groups())
            .ok_or(Error::Internal("a grouping set has no finer set that it can be derived from"))?;
        let level = finer.derive(keys, &kept, &set.absent_keys)?;
        levels.push((level, set));
    }
    levels.retain(|(_, set)| !set.is_hidden);
    let parts = levels.into_iter().map(|(level, set)| level.into_rows(keys, Some(set.id)));
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
    fn select(&self, rows: &[u32]) -> Result<Self> {
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
fn counted_rows(column: Option<&Column>, filter: Option<&Column>) -> Result<Option<Arc<Bitmap>>> {
    let valid = column.and_then(|column| column.validity.clone());
    let Some(filter) = filter else { return Ok(valid) };
    let ColumnData::Bools(bits) = &filter.data else {
        return Err(Error::Internal("the column of an aggregate's FILTER clause is not boolean"));
    };
    let passing = filter.validity.as_ref().map_or_else(|| Arc::clone(bits), |known| Arc::new(known.and(bits)));
    Ok(Some(valid.map_or_else(|| Arc::clone(&passing), |valid| Arc::new(valid.and(&passing)))))
}
