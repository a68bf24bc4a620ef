//! Stored form of a row: values by column id, so that ADD COLUMN and DROP COLUMN need not rewrite rows.
//!
//! Layout, all numbers little-endian:
//!
//! ```text
//! format  u8            1 = narrow, 2 = wide
//! count   u16           number of columns
//! entry   × count       by ascending column id
//!         narrow: id u8,  tag u8, end u16
//!         wide:   id u32, tag u8, end u32
//! body                  the values; a value ends at its entry's `end`, an offset from the start of the body
//! ```
//!
//! | tag | value | bytes |
//! |---|---|---|
//! | 0, 1, 2 | NULL, false, true | none |
//! | 3 | integer | 1, 2, 4 or 8 |
//! | 4 | unscaled numeric | 1, 2, 4, 8 or 16 |
//! | 5, 6 | float4, float8 | 4, 8 |
//! | 7, 8 | text in UTF-8, byte string | any number |
//! | 9 | interval | months i32, days i32, nanoseconds i64 |
//! | 10 | list | count u32, then per element: tag u8, length as LEB128, bytes |
//!
//! Signed numbers are two's complement. A writer uses the narrow format if ids and body fit, and the fewest bytes for a
//! number.

mod encoded_value;
mod writer;

use bytes::Bytes;
use types::ColumnId;

pub(crate) use encoded_value::{EncodedItems, EncodedList};
pub use writer::TupleWriter;

use crate::{Error, Result, Value};

#[cfg(test)]
mod tests;

/// Format with a 1-byte id and a 2-byte end per entry.
const FORMAT_NARROW: u8 = 1;
/// Format with a 4-byte id and a 4-byte end per entry.
const FORMAT_WIDE: u8 = 2;
/// Size of format and count, in bytes.
const HEADER_BYTES: usize = 3;

/// A validated stored row: reading its values cannot fail. Clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuple(Bytes);

impl Tuple {
    /// Encodes a row. Columns must be in ascending order of their ids.
    pub fn encode<'a>(values: impl IntoIterator<Item = (ColumnId, Value<'a>)>) -> Result<Tuple> {
        let mut writer = TupleWriter::default();
        for (column, value) in values {
            writer.push(column, value)?;
        }
        writer.finish()
    }

    /// Returns the row with `changes` set or added. Columns must be in ascending order of their ids.
    pub fn with_changes<'a>(&self, changes: impl IntoIterator<Item = (ColumnId, Value<'a>)>) -> Result<Tuple> {
        let row = self.reader();
        let mut writer = TupleWriter::with_capacity(row.len() + 1, self.0.len());
        let mut position = 0;
        for (column, value) in changes {
            while position < row.len() && row.column(position) < column {
                writer.copy_value(row, position);
                position += 1;
            }
            if position < row.len() && row.column(position) == column {
                position += 1;
            }
            writer.push(column, value)?;
        }
        (position..row.len()).for_each(|position| writer.copy_value(row, position));
        writer.finish()
    }

    /// Validates untrusted bytes as a stored row.
    pub fn validate(bytes: Bytes) -> Result<Tuple> {
        TupleReader::open(&bytes)?.check()?;
        Ok(Tuple(bytes))
    }

    /// Returns the value of a column; `None` if the row is older than the column.
    #[must_use]
    pub fn get(&self, column: ColumnId) -> Option<Value<'_>> {
        self.reader().get(column)
    }

    /// Returns a reader, for reading several values of the row.
    #[must_use]
    pub fn reader(&self) -> TupleReader<'_> {
        TupleReader::open(&self.0).expect("a Tuple contains validated bytes")
    }

    /// Returns the stored form.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the stored form.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// Reader of one row's values.
#[derive(Debug, Clone, Copy)]
pub struct TupleReader<'a> {
    is_wide: bool,
    entries: &'a [u8],
    body: &'a [u8],
}

impl<'a> TupleReader<'a> {
    /// Splits `bytes` into entries and body without validating the entries.
    fn open(bytes: &'a [u8]) -> Result<TupleReader<'a>> {
        let (&[format, low, high], rest) =
            bytes.split_first_chunk::<HEADER_BYTES>().ok_or(Error::Damaged("its header is missing"))?;
        let is_wide = match format {
            FORMAT_NARROW => false,
            FORMAT_WIDE => true,
            other => return Err(Error::UnknownFormat(other)),
        };
        let length = usize::from(u16::from_le_bytes([low, high])) * entry_bytes(is_wide);
        let (entries, body) =
            rest.split_at_checked(length).ok_or(Error::Damaged("its list of column entries is cut off"))?;
        Ok(TupleReader { is_wide, entries, body })
    }

    /// Validates every entry and value, so that later reads cannot fail.
    fn check(&self) -> Result<()> {
        let (mut last_id, mut start) = (0, 0);
        for position in 0..self.len() {
            let (id, tag, end) = self.decode_entry(position);
            if id <= last_id || i32::try_from(id).is_err() {
                return Err(Error::Damaged("its column ids do not ascend"));
            }
            let bytes = self.body.get(start..end).ok_or(Error::Damaged("value lies outside of the row"))?;
            encoded_value::check(tag, bytes, 0)?;
            (last_id, start) = (id, end);
        }
        if start == self.body.len() { Ok(()) } else { Err(Error::Damaged("bytes follow the last value")) }
    }

    /// Returns the number of columns.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len() / entry_bytes(self.is_wide)
    }

    /// Whether the row has no columns.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the value of a column; `None` if the row is older than the column.
    #[must_use]
    pub fn get(&self, column: ColumnId) -> Option<Value<'a>> {
        // Unless columns were dropped, ids are positions counted from 1.
        let likely = usize::try_from(column.0).unwrap_or_default().saturating_sub(1);
        self.find(column, likely).map(|position| self.value(position))
    }

    /// Returns the position of a column: tries `likely`, then searches.
    #[must_use]
    #[inline]
    pub fn find(&self, column: ColumnId, expected: usize) -> Option<usize> {
        let wanted = u32::try_from(column.0).ok()?;
        if expected < self.len() && self.id(expected) == wanted {
            return Some(expected);
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.id(middle).cmp(&wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Returns the id of the column at `position`, which must be less than [`TupleReader::len`].
    #[must_use]
    pub fn column(&self, position: usize) -> ColumnId {
        ColumnId(i32::try_from(self.id(position)).expect("TupleReader::check validated the column ids"))
    }

    /// Returns the value at `position`, which must be less than [`TupleReader::len`].
    #[must_use]
    #[inline]
    pub fn value(&self, position: usize) -> Value<'a> {
        let start = if position == 0 { 0 } else { self.decode_entry(position - 1).2 };
        let (_, tag, end) = self.decode_entry(position);
        encoded_value::decode(tag, &self.body[start..end]).expect("a Tuple contains validated bytes")
    }

    /// Iterates over the columns with their values.
    pub fn iter(self) -> impl Iterator<Item = (ColumnId, Value<'a>)> {
        (0..self.len()).map(move |position| (self.column(position), self.value(position)))
    }

    #[inline]
    fn id(&self, position: usize) -> u32 {
        self.decode_entry(position).0
    }

    /// Decodes the entry at `position`: column id, tag and end of the value in the body.
    #[inline]
    fn decode_entry(&self, position: usize) -> (u32, u8, usize) {
        if self.is_wide {
            let at = position * entry_bytes(true);
            let entry: &[u8; entry_bytes(true)] = self.entries[at..].first_chunk().expect("position is below len()");
            let [a, b, c, d, tag, e, f, g, h] = *entry;
            let end = usize::try_from(u32::from_le_bytes([e, f, g, h])).expect("usize has at least 32 bits");
            (u32::from_le_bytes([a, b, c, d]), tag, end)
        } else {
            let at = position * entry_bytes(false);
            let entry: &[u8; entry_bytes(false)] = self.entries[at..].first_chunk().expect("position is below len()");
            let [id, tag, low, high] = *entry;
            (u32::from(id), tag, usize::from(u16::from_le_bytes([low, high])))
        }
    }
}

/// Returns the size of an entry, in bytes.
const fn entry_bytes(is_wide: bool) -> usize {
    if is_wide { 9 } else { 4 }
}
