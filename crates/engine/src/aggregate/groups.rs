//! The groups of one worker, and of all of them together.

use std::sync::Arc;

use super::AggregateSpec;
use super::keys::{KeyForm, Words};
use super::state::State;
use super::table::Table;
use super::totals::Rows;
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Result};

/// Groups and what is kept of them. Gives one row for each group: its keys, then its states.
#[derive(Debug)]
pub struct Groups {
    spec: Arc<AggregateSpec>,
    keys: Vec<KeyForm>,
    /// Made with the first batch, whose forms say how many words keys have.
    table: Option<Table>,
    states: Vec<State>,
    rows: usize,
    groups: Vec<u32>,
    /// What rows without NULLs have for NULLs, as many as a batch ever had rows.
    zeros: Arc<Vec<i64>>,
}

/// Groups whose table is filled, to be given in parts.
#[derive(Debug)]
pub struct GroupRows {
    columns: Vec<Column>,
    rows: usize,
}

impl Groups {
    /// No groups yet.
    #[must_use]
    pub fn new(spec: &Arc<AggregateSpec>) -> Self {
        let keys = spec.keys.iter().map(|_| KeyForm::default()).collect();
        let states = spec.states.iter().map(|state| State::new(state.kept)).collect();
        Self { spec: Arc::clone(spec), keys, table: None, states, rows: 0, groups: Vec::new(), zeros: Arc::default() }
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
        table.groups_of(&words, batch.rows, self.rows, &mut self.groups);
        self.rows += batch.rows;
        let (groups, rows) = (table.len(), Rows::new(&self.groups));
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
            + self.keys.iter().map(KeyForm::memory_bytes).sum::<usize>()
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
    /// As [`Groups::add`].
    pub fn merge(&mut self, other: Self) -> Result<()> {
        let Some(theirs) = other.table else { return Ok(()) };
        if self.table.is_none() {
            *self = Self { table: Some(theirs), ..other };
            return Ok(());
        }
        let mut words = theirs.words().to_vec();
        let stride = if self.keys.is_empty() { 0 } else { self.keys.iter().map(KeyForm::words).sum::<usize>() + 1 };
        let mut at = 0;
        for (number, (mine, form)) in self.keys.iter_mut().zip(&other.keys).enumerate() {
            mine.translate(form, &mut words, stride, at, |nulls| nulls >> number & 1 == 1)?;
            at += mine.words();
        }
        let Some(table) = &mut self.table else { return Err(Error::Form("no table")) };
        let mut found = Vec::with_capacity(theirs.len());
        let mut part = Vec::new();
        let groups = theirs.len();
        for start in (0..groups).step_by(BATCH_ROWS) {
            let end = groups.min(start + BATCH_ROWS);
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
        self.rows += other.rows;
        let count = table.len();
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.resize(count);
            mine.merge(&found, theirs)?;
        }
        Ok(())
    }

    /// One row for each group. Without keys there is one, also of no rows.
    ///
    /// # Errors
    /// None that well-formed groups meet.
    pub fn finish(self) -> Result<GroupRows> {
        let rows = self.len();
        let mut columns = Vec::with_capacity(self.keys.len() + self.states.len());
        let words = self.table.as_ref().map_or(&[][..], Table::words);
        let stride = self.keys.iter().map(KeyForm::words).sum::<usize>() + 1;
        let mut at = 0;
        for (number, form) in self.keys.iter().enumerate() {
            let data = form.values(words, stride, at)?;
            let is_null = |row: usize| words[row * stride + stride - 1] >> number & 1 == 1;
            let has_null = (0..rows).any(is_null);
            let validity = has_null.then(|| Arc::new(Bits::of(rows, |row| !is_null(row))));
            columns.push(Column { data, validity });
            at += form.words();
        }
        for state in self.states {
            columns.push(state.column(rows)?);
        }
        Ok(GroupRows { columns, rows })
    }
}

impl GroupRows {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What they take in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.columns.iter().map(Column::memory_bytes).sum()
    }

    /// The rows from one to another.
    ///
    /// # Errors
    /// None that well-formed columns meet.
    pub fn part(&self, start: usize, end: usize) -> Result<Batch> {
        let columns = self.columns.iter().map(|column| column.slice(start, end)).collect();
        Ok(Batch { rows: end - start, columns })
    }
}

/// The rows that count; `None` for all of them.
fn counts(column: Option<&Column>, filter: Option<&Column>) -> Result<Option<Arc<Bits>>> {
    let valid = column.and_then(|column| column.validity.clone());
    let Some(filter) = filter else { return Ok(valid) };
    let Data::Bools(bits) = &filter.data else { return Err(Error::Form("a filter that is no truth value")) };
    let passing = filter.validity.as_ref().map_or_else(|| Arc::clone(bits), |known| Arc::new(known.and(bits)));
    Ok(Some(valid.map_or_else(|| Arc::clone(&passing), |valid| Arc::new(valid.and(&passing)))))
}
