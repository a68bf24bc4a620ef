//! The last of the rows that are asked for, as far as they are known: rows after it are left out before they are collected.

use std::cmp::Ordering;

use super::SortKey;
use crate::{Batch, Bits, Column, Data, Result};

/// A row's keys.
#[derive(Debug)]
pub(super) struct Bound {
    /// The keys, each by its place here.
    keys: Vec<(SortKey, Column)>,
}

impl Bound {
    pub(super) fn new(keys: &[SortKey], batch: &Batch, row: usize) -> Result<Self> {
        let row = u32::try_from(row).map_err(|_| crate::Error::Memory("the first rows of many"))?;
        let key = |key: &SortKey| Ok((*key, batch.columns[key.column].take(&[row])?));
        Ok(Self { keys: keys.iter().map(key).collect::<Result<_>>()? })
    }

    pub(super) fn first_key(&self) -> Option<&Column> {
        self.keys.first().map(|(_, value)| value)
    }

    /// The rows that come before it: as many as are asked for come before those that are equal.
    pub(super) fn keep(&mut self, batch: &Batch) -> Result<Bits> {
        let mut kept = Bits::all(batch.rows, false);
        // Rows that the keys so far do not tell from it; `None` for all.
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
                (None, Data::Ints { values, .. }, Data::Ints { values: bound, .. })
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
                        take(row, key.order(column, row, value, 0)?);
                    }
                }
                (Some(rows), ..) => {
                    for row in rows {
                        take(*row as usize, key.order(column, *row as usize, value, 0)?);
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
