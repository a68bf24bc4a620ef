//! Grouping sets: rows are grouped by all keys, coarser sets are made of groups, not of rows.

use std::sync::Arc;

use super::carried::Carried;
use super::keys::{KeyForm, Words};
use super::state::{Kept, State};
use super::table::Table;
use crate::{BATCH_ROWS, Batch, Bits, Bounds, Column, Data, Error, Result};

/// Keys that rows are grouped by together, others being NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupingSet {
    /// Of each key, whether it is not among them.
    pub absent: Vec<bool>,
    /// What tells its groups from those of other sets: a column after the keys.
    pub id: i64,
    /// Others are made of its groups, which are not given themselves.
    pub is_hidden: bool,
}

/// The groups of a set, by the keys that it has.
#[derive(Debug)]
pub struct Level {
    pub(super) absent: Vec<bool>,
    pub(super) table: Option<Table>,
    pub(super) carried: Vec<Carried>,
    pub(super) states: Vec<State>,
}

impl GroupingSet {
    /// Whether a set of these keys can be made of it.
    pub(super) fn has(&self, absent: &[bool]) -> bool {
        self.absent.iter().zip(absent).all(|(here, there)| *there || !*here)
    }
}

/// The set of all keys, and the others, those of more keys first.
pub(super) fn finest_first(sets: &[GroupingSet]) -> Result<(&GroupingSet, Vec<&GroupingSet>)> {
    let mut order: Vec<&GroupingSet> = sets.iter().collect();
    order.sort_by_key(|set| set.absent.iter().filter(|absent| **absent).count());
    let finest = order.split_first().filter(|(all, _)| !all.absent.contains(&true));
    let (all, coarser) = finest.ok_or(Error::Form("grouping sets without one of all keys"))?;
    Ok((all, coarser.to_vec()))
}

impl Level {
    /// The groups by all keys.
    pub(super) fn finest(keys: usize, table: Option<Table>, carried: Vec<Carried>, states: Vec<State>) -> Self {
        Self { absent: vec![false; keys], table, carried, states }
    }

    pub(super) fn groups(&self) -> usize {
        self.table.as_ref().map_or_else(|| usize::from(self.absent.iter().all(|absent| *absent)), Table::len)
    }

    /// The groups without more of the keys.
    pub(super) fn coarser(&self, forms: &[KeyForm], kept: &[Kept], absent: &[bool]) -> Result<Self> {
        let mut states: Vec<State> = kept.iter().map(|kept| State::new(*kept)).collect();
        let Some(finer) = &self.table else {
            return Ok(Self { absent: absent.to_vec(), table: None, carried: Vec::new(), states });
        };
        let (places, mask) = self.words_of(forms, absent);
        let mut table = Table::new(places.len());
        let stride = finer.stride();
        let (mut found, mut part) = (Vec::with_capacity(finer.len()), Vec::new());
        for start in (0..finer.len()).step_by(BATCH_ROWS) {
            let end = finer.len().min(start + BATCH_ROWS);
            let words = places.iter().map(|at| {
                let is_nulls = at + 1 == stride;
                let word = |group: usize| finer.words()[group * stride + at] & if is_nulls { mask } else { -1 };
                let values: Vec<i64> = (start..end).map(word).collect();
                let bounds =
                    values.iter().fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(*word), max.max(*word)));
                Words { values: Arc::new(values), bounds: Some(Bounds { min: bounds.0.into(), max: bounds.1.into() }) }
            });
            let words: Vec<Words> = words.collect();
            table.groups_of(&words, end - start, start, &mut part);
            found.extend_from_slice(&part);
        }
        let all: Vec<u32> = (0..).take(finer.len()).collect();
        for (mine, theirs) in states.iter_mut().zip(&self.states) {
            mine.resize(table.len());
            mine.merge(&found, theirs, &all)?;
        }
        Ok(Self { absent: absent.to_vec(), table: Some(table), carried: Vec::new(), states })
    }

    /// Which words of its groups are those of fewer keys, that of the NULLs last, and which of its bits they have.
    fn words_of(&self, forms: &[KeyForm], absent: &[bool]) -> (Vec<usize>, i64) {
        let (mut places, mut mask, mut at) = (Vec::new(), 0, 0);
        for (key, form) in forms.iter().enumerate().filter(|(key, _)| !self.absent[*key]) {
            if !absent[key] {
                places.extend(at..at + form.words());
                mask |= 1 << key;
            }
            at += form.words();
        }
        if !places.is_empty() {
            places.push(at);
        }
        (places, mask)
    }

    /// One row for each group: all keys, the number of the set if it is asked for, what keys determine, then the states.
    pub(super) fn rows(self, forms: &[KeyForm], id: Option<i64>) -> Result<Batch> {
        let rows = self.groups();
        let words = self.table.as_ref().map_or(&[][..], Table::words);
        let stride = self.table.as_ref().map_or(1, Table::stride).max(1);
        let mut columns = Vec::with_capacity(forms.len() + self.states.len());
        let mut at = 0;
        for (key, form) in forms.iter().enumerate() {
            if self.absent[key] {
                let none = Column::new(form.values(&[], 1, 0)?);
                columns.push(none.nulls_like(rows));
                continue;
            }
            let data: Data = form.values(words, stride, at)?;
            let is_null = |row: usize| words[row * stride + stride - 1] >> key & 1 == 1;
            let has_null = (0..rows).any(is_null);
            let validity = has_null.then(|| Arc::new(Bits::of(rows, |row| !is_null(row))));
            columns.push(Column { data, validity });
            at += form.words();
        }
        if let Some(id) = id {
            columns.push(Column::new(Data::Ints { values: Arc::new(vec![id; rows]), bounds: Bounds::of(id.into()) }));
        }
        for carried in &self.carried {
            columns.push(carried.column()?);
        }
        for state in self.states {
            columns.push(state.column(rows)?);
        }
        Ok(Batch { rows, columns })
    }
}
