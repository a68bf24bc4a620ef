//! A stored row: values by column id, so that a row outlives ADD COLUMN and DROP COLUMN as it is.
//!
//! Layout, all numbers little-endian:
//!
//! ```text
//! format  u8            1 = narrow, 2 = wide
//! count   u16           number of columns
//! entry   × count       by ascending column id
//!         narrow: id u8,  tag u8, end u16
//!         wide:   id u32, tag u8, end u32
//! body                  the values one after another; a value ends at its entry's `end`, counted from the body's start
//! ```
//!
//! Tags and the bytes of a value: 0 NULL, 1 false, 2 true (no bytes); 3 integer (1, 2, 4 or 8 bytes); 4 numeric without its
//! scale (1, 2, 4, 8 or 16 bytes); 5 float4; 6 float8; 7 text in UTF-8; 8 bytes; 9 interval (months i32, days i32, nanoseconds i64);
//! 10 list (count u32, then per element: tag u8, length as LEB128, bytes). Signed numbers are two's complement. A writer takes
//! the narrow format where ids and body fit, and the fewest bytes for a number.

mod stored;
mod writer;

use bytes::Bytes;
use types::ColumnId;

pub(crate) use stored::{EncodedItems, EncodedList};
pub use writer::TupleWriter;

use crate::{Error, Result, Value};

#[cfg(test)]
mod tests;

/// Id in a byte, end in two.
const NARROW: u8 = 1;
/// Id and end in four bytes each.
const WIDE: u8 = 2;
/// The format and the count.
const HEADER: usize = 3;

/// A stored row, checked: reading from it cannot fail. A copy shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuple(Bytes);

impl Tuple {
    /// A row of these values. Columns must come by ascending id.
    pub fn encode<'a>(values: impl IntoIterator<Item = (ColumnId, Value<'a>)>) -> Result<Tuple> {
        let mut writer = TupleWriter::default();
        for (column, value) in values {
            writer.push(column, value)?;
        }
        writer.finish()
    }

    /// The row with these values in the place of its own. Columns must come by ascending id.
    pub fn with<'a>(&self, changes: impl IntoIterator<Item = (ColumnId, Value<'a>)>) -> Result<Tuple> {
        let row = self.reader();
        let mut writer = TupleWriter::with_capacity(row.len() + 1, self.0.len());
        let mut position = 0;
        for (column, value) in changes {
            while position < row.len() && row.column(position) < column {
                writer.keep(row, position);
                position += 1;
            }
            if position < row.len() && row.column(position) == column {
                position += 1;
            }
            writer.push(column, value)?;
        }
        (position..row.len()).for_each(|position| writer.keep(row, position));
        writer.finish()
    }

    /// Takes bytes from anywhere for a row, if they are one.
    pub fn parse(bytes: Bytes) -> Result<Tuple> {
        TupleReader::open(&bytes)?.check()?;
        Ok(Tuple(bytes))
    }

    /// The value of a column; `None` where the row is older than the column.
    #[must_use]
    pub fn get(&self, column: ColumnId) -> Option<Value<'_>> {
        self.reader().get(column)
    }

    /// A reader, for several values of one row.
    #[must_use]
    pub fn reader(&self) -> TupleReader<'_> {
        TupleReader::open(&self.0).expect("a tuple was checked when it was made")
    }

    /// The stored form.
    #[must_use]
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The stored form.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// Reads values of one row.
#[derive(Debug, Clone, Copy)]
pub struct TupleReader<'a> {
    is_wide: bool,
    entries: &'a [u8],
    body: &'a [u8],
}

impl<'a> TupleReader<'a> {
    fn open(bytes: &'a [u8]) -> Result<TupleReader<'a>> {
        let (&[format, low, high], rest) = bytes.split_first_chunk::<HEADER>().ok_or(Error::Damaged("no header"))?;
        let is_wide = match format {
            NARROW => false,
            WIDE => true,
            other => return Err(Error::Format(other)),
        };
        let length = usize::from(u16::from_le_bytes([low, high])) * entry_bytes(is_wide);
        let (entries, body) = rest.split_at_checked(length).ok_or(Error::Damaged("entries are cut off"))?;
        Ok(TupleReader { is_wide, entries, body })
    }

    /// Every entry and value, so that no later read can fail.
    fn check(&self) -> Result<()> {
        let (mut last_id, mut start) = (0, 0);
        for position in 0..self.len() {
            let (id, tag, end) = self.entry(position);
            if id <= last_id || i32::try_from(id).is_err() {
                return Err(Error::Damaged("column ids do not ascend"));
            }
            let bytes = self.body.get(start..end).ok_or(Error::Damaged("value lies outside of the row"))?;
            stored::check(tag, bytes, 0)?;
            (last_id, start) = (id, end);
        }
        if start == self.body.len() { Ok(()) } else { Err(Error::Damaged("bytes follow the last value")) }
    }

    /// How many columns the row has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len() / entry_bytes(self.is_wide)
    }

    /// Whether the row has no column.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a column; `None` where the row is older than the column.
    #[must_use]
    pub fn get(&self, column: ColumnId) -> Option<Value<'a>> {
        // Without dropped columns, ids are positions counted from 1.
        let likely = usize::try_from(column.0).unwrap_or_default().saturating_sub(1);
        self.find(column, likely).map(|position| self.value(position))
    }

    /// Where a column is; looks at `likely` first.
    #[must_use]
    #[inline]
    pub fn find(&self, column: ColumnId, likely: usize) -> Option<usize> {
        let wanted = u32::try_from(column.0).ok()?;
        if likely < self.len() && self.id(likely) == wanted {
            return Some(likely);
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

    /// The column at a position below [`TupleReader::len`].
    #[must_use]
    pub fn column(&self, position: usize) -> ColumnId {
        ColumnId(i32::try_from(self.id(position)).expect("ids were checked"))
    }

    /// The value at a position below [`TupleReader::len`].
    #[must_use]
    #[inline]
    pub fn value(&self, position: usize) -> Value<'a> {
        let start = if position == 0 { 0 } else { self.entry(position - 1).2 };
        let (_, tag, end) = self.entry(position);
        stored::read(tag, &self.body[start..end]).expect("a tuple was checked when it was made")
    }

    /// All columns and their values.
    pub fn iter(self) -> impl Iterator<Item = (ColumnId, Value<'a>)> {
        (0..self.len()).map(move |position| (self.column(position), self.value(position)))
    }

    #[inline]
    fn id(&self, position: usize) -> u32 {
        self.entry(position).0
    }

    #[inline]
    fn entry(&self, position: usize) -> (u32, u8, usize) {
        if self.is_wide {
            let at = position * entry_bytes(true);
            let entry: &[u8; entry_bytes(true)] = self.entries[at..].first_chunk().expect("entries have one size");
            let [a, b, c, d, tag, e, f, g, h] = *entry;
            let end = usize::try_from(u32::from_le_bytes([e, f, g, h])).expect("a pointer has 32 bits at least");
            (u32::from_le_bytes([a, b, c, d]), tag, end)
        } else {
            let at = position * entry_bytes(false);
            let entry: &[u8; entry_bytes(false)] = self.entries[at..].first_chunk().expect("entries have one size");
            let [id, tag, low, high] = *entry;
            (u32::from(id), tag, usize::from(u16::from_le_bytes([low, high])))
        }
    }
}

const fn entry_bytes(is_wide: bool) -> usize {
    if is_wide { 9 } else { 4 }
}
