//! Decodes one-dimensional arrays in PostgreSQL's binary form.

use types::{Condition, SqlError, SqlResult, SqlType};

use super::binary::Reader;
use super::column::{ColumnBuilder, excess_bytes, too_short};

/// Binary array with its header read.
pub(super) struct ArrayReader<'a> {
    count: usize,
    elements: Reader<'a>,
}

impl<'a> ArrayReader<'a> {
    /// Reads the header and checks it against the element type.
    pub(super) fn read(bytes: &'a [u8], element: &SqlType) -> SqlResult<Self> {
        let mut reader = Reader(bytes);
        let dimensions = reader.i32()?;
        let flags = reader.i32()?;
        let found = reader.u32()?;
        if flags != 0 && flags != 1 {
            return Err(SqlError::new(Condition::InvalidBinaryRepresentation, "invalid array flags"));
        }
        if found != element.oid() {
            return Err(SqlError::new(
                Condition::DatatypeMismatch,
                format!(
                    "binary data has array element type {found} ({}) instead of expected {} ({element})",
                    SqlType::from_oid(found, -1).map_or_else(|| "???".to_owned(), |found| found.to_string()),
                    element.oid(),
                ),
            ));
        }
        match dimensions {
            0 if reader.0.is_empty() => Ok(Self { count: 0, elements: reader }),
            0 => Err(excess_bytes()),
            1 => {
                let count = reader.i32()?;
                let _lower_bound = reader.i32()?;
                let count = usize::try_from(count)
                    .map_err(|_| SqlError::new(Condition::InvalidBinaryRepresentation, "invalid array length"))?;
                // Each element has at least its length field, so a forged count cannot reserve memory.
                if count > reader.0.len() / 4 {
                    return Err(too_short());
                }
                Ok(Self { count, elements: reader })
            }
            2..=6 => Err(SqlError::unsupported("an array of more than one dimension")),
            other => Err(SqlError::new(
                Condition::InvalidBinaryRepresentation,
                format!("invalid number of dimensions: {other}"),
            )),
        }
    }

    /// Calls `visit` with each element's bytes (`None` for NULL); excess bytes are an error.
    pub(super) fn for_each(mut self, mut visit: impl FnMut(Option<&'a [u8]>) -> SqlResult<()>) -> SqlResult<()> {
        for _ in 0..self.count {
            match self.elements.i32()? {
                -1 => visit(None)?,
                length => {
                    let length = usize::try_from(length).map_err(|_| too_short())?;
                    visit(Some(self.elements.take(length)?))?;
                }
            }
        }
        if self.elements.0.is_empty() { Ok(()) } else { Err(excess_bytes()) }
    }
}

/// Appends the elements of a binary array to `items`.
pub(super) fn append_binary_array(bytes: &[u8], items: &mut ColumnBuilder) -> SqlResult<()> {
    let array = ArrayReader::read(bytes, items.sql_type())?;
    array.for_each(|element| {
        match element {
            Some(element) => items.push_binary(element)?,
            None => items.push_null(),
        }
        Ok(())
    })
}
