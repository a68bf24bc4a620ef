//! Top-N filter: rows that sort after the N-th row so far are skipped before they are collected.

use std::cmp::Ordering;

use super::SortKey;
use crate::{Batch, Bitmap, Column, ColumnData, Result};

/// Sort keys of the N-th row so far.
#[derive(Debug)]
pub(super) struct TopNBound {
    /// Sort keys, each with its value as a column of one row.
    keys: Vec<(SortKey, Column)>,
}

impl TopNBound {
    pub(super) fn new(keys: &[SortKey], batch: &Batch, row: usize) -> Result<Self> {
        let row = u32::try_from(row).map_err(|_| crate::Error::OutOfMemory("2^32 rows collected by a top-N sort"))?;
        let key = |key: &SortKey| Ok((*key, batch.columns[key.column].take(&[row])?));
        Ok(Self { keys: keys.iter().map(key).collect::<Result<_>>()? })
    }

    pub(super) fn first_key(&self) -> Option<&Column> {
        self.keys.first().map(|(_, value)| value)
    }

    /// Returns the rows that sort before the bound. Equal ones are not needed, as N rows up to the bound exist already.
    pub(super) fn select_before(&mut self, batch: &Batch) -> Result<Bitmap> {
        let mut kept = Bitmap::filled(batch.rows, false);
        // Rows that equal the bound in the keys so far; `None` is all rows.
        let mut equal: Option<Vec<u32>> = None;
        for (key, value) in &self.keys {
            let column = &batch.columns[key.column];
            let mut undecided = Vec::new();
            let mut take = |row: usize, order: Ordering| match order {
                Ordering::Less => kept.set(row),
                Ordering::Equal => undecided.push(u32::try_from(row).expect("a batch has fewer than 2^32 rows")),
                Ordering::Greater => {}
            };
            match (&equal, &column.data, &value.data) {
                (None, ColumnData::Ints { values, .. }, ColumnData::Ints { values: bound, .. })
                    if column.validity.is_none() && value.is_valid(0) =>
                {
                    let bound = bound[0];
                    for (row, number) in values.iter().enumerate() {
                        let order = number.cmp(&bound);
                        take(row, if key.is_descending { order.reverse() } else { order });
                    }
                }
                (None, ..) => {
                    for row in 0..batch.rows {
                        take(row, key.compare(column, row, value, 0)?);
                    }
                }
                (Some(rows), ..) => {
                    for row in rows {
                        take(*row as usize, key.compare(column, *row as usize, value, 0)?);
                    }
                }
            }
            if undecided.is_empty() {
                break;
            }
            equal = Some(undecided);
        }
        Ok(kept)
    }
}
