//! Grouping sets: rows are grouped by all keys; coarser sets are derived from groups of finer sets instead of rows.

use std::sync::Arc;

use super::aggregate_state::{AggregateKind, State};
use super::carried_columns::CarriedColumn;
use super::group_table::GroupTable;
use super::key_encoding::{KeyEncoding, KeyWords};
use crate::{BATCH_ROWS, Batch, Bitmap, Bounds, Column, ColumnData, Error, Result};

/// Grouping set: some of the keys; the others are NULL in its result rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupingSet {
    /// Whether each key is absent from the set.
    pub absent_keys: Vec<bool>,
    /// Id of the set, an output column after the keys: tells its groups from those of other sets.
    pub id: i64,
    /// Whether the set only serves to derive others and is not part of the result.
    pub is_hidden: bool,
}

/// Groups of one grouping set, or of one partition of it, by the keys that the set has.
#[derive(Debug)]
pub struct SetGroups {
    pub(super) absent_keys: Vec<bool>,
    pub(super) table: Option<GroupTable>,
    pub(super) carried: Vec<CarriedColumn>,
    pub(super) states: Vec<State>,
}

impl GroupingSet {
    /// Returns whether a set with these absent keys can be derived from this one.
    pub(super) fn can_derive(&self, absent_keys: &[bool]) -> bool {
        self.absent_keys.iter().zip(absent_keys).all(|(here, there)| *there || !*here)
    }
}

/// Returns the set of all keys, then the others, those with more keys first.
pub(super) fn sort_finest_first(sets: &[GroupingSet]) -> Result<(&GroupingSet, Vec<&GroupingSet>)> {
    let mut order: Vec<&GroupingSet> = sets.iter().collect();
    order.sort_by_key(|set| set.absent_keys.iter().filter(|absent_keys| **absent_keys).count());
    let finest = order.split_first().filter(|(all, _)| !all.absent_keys.contains(&true));
    let (all, coarser) = finest.ok_or(Error::Internal("no grouping set of the aggregation has all group keys"))?;
    Ok((all, coarser.to_vec()))
}

impl SetGroups {
    /// Creates the groups of the set of all keys.
    pub(super) fn new(keys: usize, table: Option<GroupTable>, carried: Vec<CarriedColumn>, states: Vec<State>) -> Self {
        Self { absent_keys: vec![false; keys], table, carried, states }
    }

    pub(super) fn groups(&self) -> usize {
        self.table
            .as_ref()
            .map_or_else(|| usize::from(self.absent_keys.iter().all(|absent_keys| *absent_keys)), GroupTable::len)
    }

    /// Derives the groups of a coarser set, in which the keys `absent` are missing.
    pub(super) fn derive(&self, forms: &[KeyEncoding], kept: &[AggregateKind], absent_keys: &[bool]) -> Result<Self> {
        let mut states: Vec<State> = kept.iter().map(|kept| State::new(*kept)).collect();
        let Some(finer) = &self.table else {
            return Ok(Self { absent_keys: absent_keys.to_vec(), table: None, carried: Vec::new(), states });
        };
        let (places, mask) = self.remaining_key_words(forms, absent_keys);
        let mut table = GroupTable::new(places.len());
        let stride = finer.stride();
        let (mut found, mut part) = (Vec::with_capacity(finer.len()), Vec::new());
        for start in (0..finer.len()).step_by(BATCH_ROWS) {
            let end = finer.len().min(start + BATCH_ROWS);
            let words = places.iter().map(|at| {
                let is_nulls = at + 1 == stride;
                let word = |group: usize| finer.key_words()[group * stride + at] & if is_nulls { mask } else { -1 };
                let values: Vec<i64> = (start..end).map(word).collect();
                let bounds =
                    values.iter().fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(*word), max.max(*word)));
                KeyWords {
                    values: Arc::new(values),
                    bounds: Some(Bounds { min: bounds.0.into(), max: bounds.1.into() }),
                }
            });
            let words: Vec<KeyWords> = words.collect();
            table.find_or_insert(&words, end - start, start, &mut part);
            found.extend_from_slice(&part);
        }
        let all: Vec<u32> = (0..).take(finer.len()).collect();
        for (mine, theirs) in states.iter_mut().zip(&self.states) {
            mine.resize(table.len());
            mine.merge(&found, theirs, &all)?;
        }
        Ok(Self { absent_keys: absent_keys.to_vec(), table: Some(table), carried: Vec::new(), states })
    }

    /// Returns the indices of the words that remain in a coarser set, the null word last, and a mask of the null bits
    /// that remain.
    fn remaining_key_words(&self, forms: &[KeyEncoding], absent_keys: &[bool]) -> (Vec<usize>, i64) {
        let (mut places, mut mask, mut at) = (Vec::new(), 0, 0);
        for (key, form) in forms.iter().enumerate().filter(|(key, _)| !self.absent_keys[*key]) {
            if !absent_keys[key] {
                places.extend(at..at + form.word_count());
                mask |= 1 << key;
            }
            at += form.word_count();
        }
        if !places.is_empty() {
            places.push(at);
        }
        (places, mask)
    }

    /// Returns one row for each group: all keys, the set's `id` if there is one, carried columns, then states.
    pub(super) fn into_rows(self, forms: &[KeyEncoding], id: Option<i64>) -> Result<Batch> {
        let rows = self.groups();
        let words = self.table.as_ref().map_or(&[][..], GroupTable::key_words);
        let stride = self.table.as_ref().map_or(1, GroupTable::stride).max(1);
        let mut columns = Vec::with_capacity(forms.len() + self.states.len());
        let mut at = 0;
        for (key, form) in forms.iter().enumerate() {
            if self.absent_keys[key] {
                let none = Column::new(form.decode(&[], 1, 0)?);
                columns.push(none.nulls_like(rows));
                continue;
            }
            let data: ColumnData = form.decode(words, stride, at)?;
            let is_null = |row: usize| words[row * stride + stride - 1] >> key & 1 == 1;
            let has_null = (0..rows).any(is_null);
            let validity = has_null.then(|| Arc::new(Bitmap::from_fn(rows, |row| !is_null(row))));
            columns.push(Column { data, validity });
            at += form.word_count();
        }
        if let Some(id) = id {
            columns.push(Column::new(ColumnData::Ints {
                values: Arc::new(vec![id; rows]),
                bounds: Bounds::from_value(id.into()),
            }));
        }
        for carried in &self.carried {
            columns.push(carried.concat()?);
        }
        for state in self.states {
            columns.push(state.into_column(rows)?);
        }
        Ok(Batch { rows, columns })
    }
}
