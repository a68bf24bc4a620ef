//! Values of a block as 64-bit keys.

use std::borrow::Cow;

use crate::row_set::{ones, positions};
use crate::{Mask, VECTOR_ROWS, ValidityBitmap, first_rows_mask};

/// Keys in row order with their validity. A NULL has the key of another row of its vector, so that it changes neither
/// bounds nor runs of keys.
#[derive(Clone)]
pub(crate) struct Keys<'a> {
    values: Cow<'a, [i64]>,
    /// Masks of the rows that are not NULL, by vector; `None` if there are no NULLs.
    validity: Option<Vec<Mask>>,
    null_count: usize,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(values: &'a [i64], validity: Option<ValidityBitmap<'_>>) -> Self {
        let Some(bitmap) = validity else {
            return Self { values: Cow::Borrowed(values), validity: None, null_count: 0 };
        };
        let validity: Vec<Mask> = values
            .chunks(VECTOR_ROWS)
            .enumerate()
            .map(|(vector, rows)| bitmap.mask(vector * VECTOR_ROWS, rows.len()))
            .collect();
        Self::with_masks(values, validity)
    }

    /// Creates keys with the masks of the rows of each vector that are not NULL.
    pub(crate) fn with_masks(values: &'a [i64], validity: Vec<Mask>) -> Self {
        let valid: usize = validity.iter().flatten().map(|word| word.count_ones() as usize).sum();
        let null_count = values.len() - valid;
        if null_count == 0 {
            return Self { values: Cow::Borrowed(values), validity: None, null_count };
        }
        let mut filled = values.to_vec();
        for (rows, mask) in filled.chunks_mut(VECTOR_ROWS).zip(&validity) {
            fill_nulls(rows, mask);
        }
        Self { values: Cow::Owned(filled), validity: Some(validity), null_count }
    }

    pub(crate) fn rows(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn null_count(&self) -> usize {
        self.null_count
    }

    pub(crate) fn values(&self) -> &[i64] {
        &self.values
    }

    /// Iterates over the vectors: their keys and the masks of the rows that are not NULL.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = (&[i64], Mask)> {
        self.values.chunks(VECTOR_ROWS).enumerate().map(|(vector, values)| {
            let mask = self.validity.as_ref().map_or_else(|| first_rows_mask(values.len()), |masks| masks[vector]);
            (values, mask)
        })
    }

    /// Returns the masks of the rows that are not NULL, by vector; `None` if there are no NULLs.
    pub(crate) fn validity(&self) -> Option<&[Mask]> {
        self.validity.as_deref()
    }

    pub(crate) fn is_valid(&self, row: usize) -> bool {
        let bit = |masks: &Vec<Mask>| masks[row / VECTOR_ROWS][row % VECTOR_ROWS / 64] >> (row % 64) & 1 == 1;
        self.validity.as_ref().is_none_or(bit)
    }
}

/// Sets each NULL to the value before it; leading NULLs to the first value.
fn fill_nulls(rows: &mut [i64], mask: &Mask) {
    let Some(first) = positions(mask).next() else {
        rows.fill(0);
        return;
    };
    let value = rows[first];
    rows[..first].fill(value);
    for row in null_rows(mask, rows.len()).skip_while(|row| *row < first) {
        rows[row] = rows[row - 1];
    }
}

/// Iterates over the rows of a vector that are not in `mask`.
pub(crate) fn null_rows(mask: &Mask, rows: usize) -> impl Iterator<Item = usize> {
    let all = first_rows_mask(rows);
    let nulls: Mask = std::array::from_fn(|word| all[word] & !mask[word]);
    (0..nulls.len()).flat_map(move |word| ones(nulls[word]).map(move |bit| word * 64 + bit))
}
