//! Page that is read without being cached: values stay as in the file, nothing is packed, and only the dictionary
//! entries of selected rows are looked up.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, Int32Array, Int64Array, PrimitiveArray, StringViewArray, UInt32Array};
use arrow::buffer::Buffer;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use blocks::kernels::Kernels;
use blocks::{
    Condition, Dictionary, KeyRanges, Mask, PruneResult, RowSet, TextCondition, TextMatcher, VECTOR_ROWS, Values,
};
use bytes::Bytes;

use super::block::{compact_strings, null_buffer, string_view_array, view};
use crate::{Error, Result};

/// With fewer selected rows in a vector than this, strings are tested one by one.
const ROW_BY_ROW_MAX: usize = 64;
/// Up to this many value ranges are tested with vector kernels; more are tested value by value.
const KERNEL_RANGES_MAX: usize = 4;

/// Page of up to [`blocks::BLOCK_ROWS`] rows of a column that is not cached.
#[derive(Debug)]
pub struct UncachedPage {
    /// Number of rows.
    pub(super) rows: usize,
    values: UncachedValues,
    /// Validity bit of each row, in complete vectors; `None` if there are no NULLs.
    validity: Option<Vec<Mask>>,
}

#[derive(Debug)]
/// Values of an uncached page.
enum UncachedValues {
    /// Plain numbers, one for each row.
    Numbers { values: Vec<i64>, bounds: (i64, i64) },
    /// Dictionary-encoded numbers.
    DictionaryNumbers { codes: IndexVectors, numbers: Arc<NumberDictionary> },
    /// Dictionary-encoded strings.
    DictionaryStrings { codes: IndexVectors, dictionary: Arc<SortedStrings> },
    /// Plain strings: the byte range of each one in the page, which has length prefixes between them; an empty range
    /// for NULL.
    Texts { page: Bytes, ranges: Vec<Range<u32>> },
}

/// Dictionary indices in complete vectors; those of NULL rows and of rows behind the last are arbitrary valid indices.
type IndexVectors = Vec<[u32; VECTOR_ROWS]>;

/// Number dictionary of a column chunk.
#[derive(Debug)]
pub(super) struct NumberDictionary {
    values: Vec<i64>,
    bounds: (i64, i64),
}

/// String dictionary of a column chunk, sorted, beginning with the empty string, which NULL rows refer to.
#[derive(Debug)]
pub(super) struct SortedStrings {
    pub(super) strings: Dictionary,
    /// Sorted code of each index of the file's dictionary.
    pub(super) sorted_codes: Vec<u32>,
    /// Arrow string view of each dictionary entry, pointing into `heap`.
    pub(super) views: Vec<u128>,
    pub(super) heap: Buffer,
}

impl NumberDictionary {
    pub(super) fn new(values: Vec<i64>) -> Self {
        let bounds = if values.is_empty() { (0, 0) } else { Kernels::get().min_max(&values) };
        Self { values, bounds }
    }

    pub(super) fn values(&self) -> &[i64] {
        &self.values
    }
}

impl UncachedPage {
    /// Creates a page of plain numbers, one for each row; NULL rows hold zero.
    pub(super) fn from_numbers(values: Vec<i64>, validity: Option<Vec<Mask>>) -> Self {
        let bounds = if values.is_empty() { (0, 0) } else { Kernels::get().min_max(&values) };
        Self { rows: values.len(), values: UncachedValues::Numbers { values, bounds }, validity }
    }

    /// Creates a page of dictionary-encoded numbers.
    pub(super) fn from_number_codes(
        rows: usize,
        codes: IndexVectors,
        numbers: &Arc<NumberDictionary>,
        validity: Option<Vec<Mask>>,
    ) -> Self {
        Self { rows, values: UncachedValues::DictionaryNumbers { codes, numbers: Arc::clone(numbers) }, validity }
    }

    /// Creates a page of dictionary-encoded strings.
    pub(super) fn from_string_codes(
        rows: usize,
        codes: IndexVectors,
        dictionary: &Arc<SortedStrings>,
        validity: Option<Vec<Mask>>,
    ) -> Self {
        Self { rows, values: UncachedValues::DictionaryStrings { codes, dictionary: Arc::clone(dictionary) }, validity }
    }

    /// Creates a page of plain strings at these byte ranges of `page`; all are valid UTF-8.
    pub(super) fn from_strings(page: Bytes, places: Vec<Range<u32>>, validity: Option<Vec<Mask>>) -> Self {
        Self { rows: places.len(), values: UncachedValues::Texts { page, ranges: places }, validity }
    }

    /// Returns the numbers of the selected rows, and bounds on all numbers of the page; `None` if the page holds
    /// strings.
    #[must_use]
    pub fn numbers(&self, rows: &RowSet) -> Option<(Values<i64>, (i64, i64))> {
        match &self.values {
            UncachedValues::Numbers { values, bounds } => Some((self.collect_values(rows, |row| values[row]), *bounds)),
            UncachedValues::DictionaryNumbers { codes, numbers } => {
                let number = |row: usize| numbers.values[codes[row / VECTOR_ROWS][row % VECTOR_ROWS] as usize];
                Some((self.collect_values(rows, number), numbers.bounds))
            }
            UncachedValues::DictionaryStrings { .. } | UncachedValues::Texts { .. } => None,
        }
    }

    /// Returns the codes of the selected rows, which index [`UncachedPage::strings`]; `None` if the page has no string
    /// dictionary.
    #[must_use]
    pub fn codes(&self, rows: &RowSet) -> Option<Values<u32>> {
        let UncachedValues::DictionaryStrings { codes, dictionary } = &self.values else { return None };
        Some(
            self.collect_values(rows, |row| {
                dictionary.sorted_codes[codes[row / VECTOR_ROWS][row % VECTOR_ROWS] as usize]
            }),
        )
    }

    /// Returns the string dictionary of the chunk, sorted; `None` if there is none.
    #[must_use]
    pub fn strings(&self) -> Option<StringViewArray> {
        let UncachedValues::DictionaryStrings { dictionary, .. } = &self.values else { return None };
        Some(string_view_array(dictionary.views.clone(), dictionary.heap.clone(), None))
    }

    /// Returns true if the page holds dictionary-encoded strings.
    pub(super) fn has_dictionary(&self) -> bool {
        matches!(self.values, UncachedValues::DictionaryStrings { .. })
    }

    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns true if the page holds strings.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.values, UncachedValues::DictionaryStrings { .. } | UncachedValues::Texts { .. })
    }

    /// Returns the approximate memory size in bytes, without the dictionary, which the chunk owns.
    pub(super) fn memory_bytes(&self) -> usize {
        let values = match &self.values {
            UncachedValues::Numbers { values, .. } => values.len() * size_of::<i64>(),
            UncachedValues::DictionaryNumbers { codes, .. } | UncachedValues::DictionaryStrings { codes, .. } => {
                size_of_val(codes.as_slice())
            }
            UncachedValues::Texts { page, ranges: places } => page.len() + size_of_val(places.as_slice()),
        };
        values + self.validity.as_deref().map_or(0, size_of_val)
    }

    /// Returns the values of the selected rows as an Arrow array of the type `form`.
    pub(super) fn gather(&self, rows: &RowSet, data_type: &DataType) -> Result<ArrayRef> {
        match &self.values {
            UncachedValues::DictionaryStrings { dictionary, .. } => {
                let Values { values, validity } = self.codes(rows).expect("gather: a page of string codes has codes");
                let views = values.iter().map(|code| dictionary.views[*code as usize]).collect();
                return Ok(Arc::new(compact_strings(string_view_array(views, dictionary.heap.clone(), validity))));
            }
            UncachedValues::Texts { page, ranges: places } => {
                let view_of = |row: usize| view(text(page, &places[row]), places[row].start as usize);
                let Values { values, validity } = self.collect_values(rows, view_of);
                return Ok(Arc::new(compact_strings(string_view_array(values, Buffer::from(page.clone()), validity))));
            }
            UncachedValues::Numbers { .. } | UncachedValues::DictionaryNumbers { .. } => {}
        }
        let (Values { values, validity }, _) = self.numbers(rows).expect("gather: a page without strings has numbers");
        let nulls = null_buffer(validity, values.len());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the file has values of the form")]
        Ok(match data_type {
            DataType::Int16 => {
                Arc::new(Int16Array::new(values.into_iter().map(|value| value as i16).collect(), nulls)) as ArrayRef
            }
            DataType::Int32 => Arc::new(Int32Array::new(values.into_iter().map(|value| value as i32).collect(), nulls)),
            DataType::Date32 => {
                let values = values.into_iter().map(|value| value as i32).collect();
                Arc::new(PrimitiveArray::<Date32Type>::new(values, nulls))
            }
            DataType::UInt32 => {
                Arc::new(UInt32Array::new(values.into_iter().map(|value| value as u32).collect(), nulls))
            }
            DataType::Int64 => Arc::new(Int64Array::new(values.into(), nulls)),
            DataType::Time64(TimeUnit::Microsecond) => {
                Arc::new(PrimitiveArray::<Time64MicrosecondType>::new(values.into(), nulls))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let values = PrimitiveArray::<TimestampMicrosecondType>::new(values.into(), nulls);
                Arc::new(values.with_data_type(data_type.clone()))
            }
            DataType::Decimal128(..) => {
                let values = values.into_iter().map(i128::from).collect();
                Arc::new(PrimitiveArray::<Decimal128Type>::new(values, nulls).with_data_type(data_type.clone()))
            }
            _ => {
                return Err(Error::Block(blocks::Error::Damaged(
                    "an uncached page of numbers was read as a type that is not numeric",
                )));
            }
        })
    }

    /// Collects the values of the selected rows; NULL rows get the default value.
    fn collect_values<T: Copy + Default>(&self, rows: &RowSet, value: impl Fn(usize) -> T) -> Values<T> {
        let mut values = Vec::with_capacity(rows.count());
        for vector in rows.vector_span() {
            for (word, bits) in rows.vector(vector).iter().enumerate() {
                let first = vector * VECTOR_ROWS + word * 64;
                if *bits == u64::MAX {
                    values.extend((first..first + 64).map(&value));
                    continue;
                }
                let mut bits = *bits;
                while bits != 0 {
                    values.push(value(first + bits.trailing_zeros() as usize));
                    bits &= bits - 1;
                }
            }
        }
        let Some(masks) = &self.validity else { return Values { values, validity: None } };
        let mut words = vec![0_u64; values.len().div_ceil(64)];
        let mut has_nulls = false;
        for (at, row) in rows.iter().enumerate() {
            let is_valid = masks[row / VECTOR_ROWS][row % VECTOR_ROWS / 64] >> (row % 64) & 1;
            words[at / 64] |= is_valid << (at % 64);
            if is_valid == 0 {
                values[at] = T::default();
                has_nulls = true;
            }
        }
        Values { values, validity: has_nulls.then_some(words) }
    }
}

impl UncachedPage {
    /// Restricts `rows` to those whose number satisfies the condition.
    pub(super) fn filter_numbers(&self, condition: &Condition<i128>, rows: &mut RowSet) {
        match condition {
            Condition::IsNull => return self.filter_nulls(true, rows),
            Condition::IsNotNull => return self.filter_nulls(false, rows),
            _ => {}
        }
        let ranges = condition.ranges();
        match &self.values {
            UncachedValues::Numbers { values, bounds } => match ranges.prune(bounds.0, bounds.1) {
                PruneResult::None => rows.clear(),
                PruneResult::All => self.filter_nulls(false, rows),
                PruneResult::Some => self.filter_values(values, &ranges, rows),
            },
            UncachedValues::DictionaryNumbers { codes, numbers } => {
                let passes = numbers.values.iter().map(|number| ranges.contains(*number));
                self.filter_codes(codes, &passing_index_table(passes), rows);
            }
            UncachedValues::DictionaryStrings { .. } | UncachedValues::Texts { .. } => {}
        }
    }

    /// Restricts `rows` to those whose string satisfies the condition.
    pub(super) fn filter_strings(&self, condition: &TextCondition, rows: &mut RowSet) {
        match (condition, &self.values) {
            (TextCondition::IsNull, _) => self.filter_nulls(true, rows),
            (TextCondition::IsNotNull, _) => self.filter_nulls(false, rows),
            (condition, UncachedValues::Texts { page, ranges: places }) => {
                self.filter_texts(page, places, &TextMatcher::new(condition), rows);
            }
            (condition, UncachedValues::DictionaryStrings { codes, dictionary }) => {
                let passing = dictionary.strings.matching(condition);
                let passes = dictionary.sorted_codes.iter().map(|place| passing.contains(i64::from(*place)));
                self.filter_codes(codes, &passing_index_table(passes), rows);
            }
            _ => {}
        }
    }

    /// Evaluates a condition on plain strings; searches whole vectors at once where the condition allows it.
    fn filter_texts(&self, page: &[u8], places: &[Range<u32>], matcher: &TextMatcher<'_>, rows: &mut RowSet) {
        let mut ends = Vec::with_capacity(VECTOR_ROWS);
        let set = rows.clone();
        self.filter(rows, |vector| {
            let first = vector * VECTOR_ROWS;
            let places = &places[first..places.len().min(first + VECTOR_ROWS)];
            let mut mask = Mask::default();
            let mut note = |row: usize, passes: bool| mask[row / 64] |= u64::from(passes) << (row % 64);
            if !matcher.is_substring_search() || set.count_in_vector(vector) < ROW_BY_ROW_MAX {
                let set = set.vector(vector);
                let rows = (0..places.len()).filter(|row| set[row / 64] >> (row % 64) & 1 == 1);
                rows.for_each(|row| note(row, matcher.matches(text(page, &places[row]))));
                return mask;
            }
            // Bytes between two strings count towards the second one; a match there is then checked against the string
            // alone.
            let start = places.iter().find(|place| !place.is_empty()).map_or(0, |place| place.start);
            let mut end = 0;
            ends.clear();
            ends.extend(places.iter().map(|place| {
                end = if place.is_empty() { end } else { place.end - start };
                end
            }));
            let heap = &page[start as usize..][..end as usize];
            matcher.search(heap, &ends, |row| {
                note(row, matcher.matches(text(page, &places[row])) != matcher.is_negated())
            });
            if matcher.is_negated() {
                mask.iter_mut().for_each(|word| *word = !*word);
            }
            mask
        });
    }

    /// Evaluates value ranges on plain numbers.
    fn filter_values(&self, values: &[i64], ranges: &KeyRanges, rows: &mut RowSet) {
        let mut lanes = [0_u64; VECTOR_ROWS];
        self.filter(rows, |vector| {
            let values = &values[vector * VECTOR_ROWS..];
            let values = &values[..values.len().min(VECTOR_ROWS)];
            let mut mask = Mask::default();
            if ranges.as_slice().len() <= KERNEL_RANGES_MAX {
                lanes.iter_mut().zip(values).for_each(|(lane, value)| *lane = value.cast_unsigned());
                for (low, high) in ranges.as_slice() {
                    let span = high.wrapping_sub(*low).cast_unsigned();
                    let passing = Kernels::get().mask_between(&lanes, low.cast_unsigned(), span);
                    mask.iter_mut().zip(passing).for_each(|(word, bits)| *word |= bits);
                }
            } else {
                for (row, value) in values.iter().enumerate() {
                    mask[row / 64] |= u64::from(ranges.contains(*value)) << (row % 64);
                }
            }
            mask
        });
    }

    /// Restricts `rows` to those whose dictionary index has a 1 in `table`.
    fn filter_codes(&self, codes: &IndexVectors, table: &[u8], rows: &mut RowSet) {
        self.filter(rows, |vector| {
            let mut mask = Mask::default();
            for (word, codes) in mask.iter_mut().zip(codes[vector].as_chunks::<64>().0) {
                // Eight indices at a time make a byte. Gather instructions are slower than this on some processors.
                for (byte, codes) in codes.as_chunks::<8>().0.iter().enumerate() {
                    let bits = codes
                        .iter()
                        .enumerate()
                        .fold(0, |bits, (bit, code)| bits | (table[*code as usize & (table.len() - 1)] & 1) << bit);
                    *word |= u64::from(bits) << (byte * 8);
                }
            }
            mask
        });
    }

    /// Restricts `rows` to the rows in each vector's mask that are not NULL.
    fn filter(&self, rows: &mut RowSet, mut mask_of: impl FnMut(usize) -> Mask) {
        debug_assert_eq!(rows.rows(), self.rows, "a set of this page's rows");
        for vector in 0..rows.vectors() {
            if rows.is_empty_in_vector(vector) {
                continue;
            }
            let mut mask = mask_of(vector);
            if let Some(masks) = &self.validity {
                mask.iter_mut().zip(&masks[vector]).for_each(|(word, valid)| *word &= valid);
            }
            rows.retain_in_vector(vector, &mask);
        }
    }

    /// Restricts `rows` to NULL rows, or to rows that are not NULL.
    fn filter_nulls(&self, nulls: bool, rows: &mut RowSet) {
        let Some(masks) = &self.validity else {
            if nulls {
                rows.clear();
            }
            return;
        };
        for (vector, mask) in masks.iter().enumerate() {
            rows.retain_in_vector(vector, &mask.map(|word| if nulls { !word } else { word }));
        }
    }
}

/// Returns the bytes of a string of the page.
fn text<'a>(page: &'a [u8], place: &Range<u32>) -> &'a [u8] {
    &page[place.start as usize..place.end as usize]
}

/// Returns 1 for each index that passes and 0 otherwise, padded with zeros to a power of two.
fn passing_index_table(passes: impl ExactSizeIterator<Item = bool>) -> Vec<u8> {
    let places = passes.len().max(1).next_power_of_two();
    let mut table: Vec<u8> = passes.map(u8::from).collect();
    table.resize(places, 0);
    table
}
