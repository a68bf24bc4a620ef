//! Writer of stored rows.

use bytes::Bytes;
use types::ColumnId;

use super::{FORMAT_NARROW, FORMAT_WIDE, HEADER_BYTES, Tuple, TupleReader, encoded_value, entry_bytes};
use crate::{Error, Result, Value};

/// Encoder of stored rows, which reuses its buffers from row to row.
#[derive(Debug, Default)]
pub struct TupleWriter {
    entries: Vec<TupleEntry>,
    body: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct TupleEntry {
    id: u32,
    value_tag: u8,
    value_end: usize,
}

impl TupleWriter {
    /// Adds a value to the row. Columns must be in ascending order of their ids.
    #[inline]
    pub fn push(&mut self, column: ColumnId, value: Value<'_>) -> Result<()> {
        let last = self.entries.last().map_or(0, |entry| entry.id);
        let id = u32::try_from(column.0).ok().filter(|id| last < *id).ok_or(Error::ColumnOrder(column.0))?;
        let tag = encoded_value::encode(value, &mut self.body)?;
        self.entries.push(TupleEntry { id, value_tag: tag, value_end: self.body.len() });
        Ok(())
    }

    /// Creates a writer with memory reserved for `columns` entries and `bytes` of values.
    pub(super) fn with_capacity(columns: usize, bytes: usize) -> Self {
        Self { entries: Vec::with_capacity(columns), body: Vec::with_capacity(bytes) }
    }

    /// Copies the encoded value at `position` of another row. Columns must be in ascending order of their ids.
    pub(super) fn copy_value(&mut self, row: TupleReader<'_>, position: usize) {
        let start = if position == 0 { 0 } else { row.decode_entry(position - 1).2 };
        let (id, tag, end) = row.decode_entry(position);
        self.body.extend_from_slice(&row.body[start..end]);
        self.entries.push(TupleEntry { id, value_tag: tag, value_end: self.body.len() });
    }

    /// Returns the row and resets the writer, also on an error.
    pub fn finish(&mut self) -> Result<Tuple> {
        let tuple = self.build_tuple();
        self.clear();
        tuple
    }

    /// Resets the writer.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.body.clear();
    }

    fn build_tuple(&self) -> Result<Tuple> {
        let too_large = || Error::TooLarge { columns: self.entries.len(), bytes: self.body.len() };
        let count = u16::try_from(self.entries.len()).map_err(|_| too_large())?;
        u32::try_from(self.body.len()).map_err(|_| too_large())?;
        let last_id = self.entries.last().map_or(0, |entry| entry.id);
        let is_wide = u8::try_from(last_id).is_err() || u16::try_from(self.body.len()).is_err();

        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.entries.len() * entry_bytes(is_wide) + self.body.len());
        bytes.push(if is_wide { FORMAT_WIDE } else { FORMAT_NARROW });
        bytes.extend_from_slice(&count.to_le_bytes());
        for TupleEntry { id, value_tag: tag, value_end: end } in &self.entries {
            if is_wide {
                let end = u32::try_from(*end).expect("the body's length was checked to fit 32 bits");
                bytes.extend_from_slice(&id.to_le_bytes());
                bytes.push(*tag);
                bytes.extend_from_slice(&end.to_le_bytes());
            } else {
                let end = u16::try_from(*end).expect("a narrow row's body fits 16 bits").to_le_bytes();
                bytes.extend_from_slice(&[u8::try_from(*id).expect("a narrow row's ids fit"), *tag, end[0], end[1]]);
            }
        }
        bytes.extend_from_slice(&self.body);
        Ok(Tuple(Bytes::from(bytes)))
    }
}
