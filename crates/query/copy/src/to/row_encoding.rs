//! Encodes batches as rows of text, CSV or binary COPY.

use arrow::array::RecordBatch;
use bytes::{BufMut, BytesMut};
use types::{SqlResult, SqlType};
use value_codec::encode::{BinaryEncoder, TextEncoder, TextStyle};

use crate::from::{SIGNATURE, TRAILER};

/// Format of the output, the same for all batches of a COPY.
#[derive(Debug)]
pub(crate) struct RowFormat {
    pub(crate) columns: Vec<Column>,
    pub(crate) style: RowStyle,
    pub(crate) text_style: TextStyle,
}

/// Column of the output.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) sql_type: SqlType,
    /// True for FORCE_QUOTE: every value but NULL is quoted.
    pub(crate) force_quote: bool,
}

/// Row format with its options.
#[derive(Debug)]
pub(crate) enum RowStyle {
    Text { delimiter: u8, null: String, header: bool },
    Csv { delimiter: u8, null: String, header: bool, quote: u8, escape: u8 },
    Binary,
}

/// Encoded rows, with the end of each.
#[derive(Debug, Default)]
pub(crate) struct EncodedRows {
    pub(crate) bytes: BytesMut,
    pub(crate) ends: Vec<usize>,
}

impl RowFormat {
    /// Appends the header: a line of names as a row of its own, or the binary signature as part of the first row.
    pub(crate) fn write_header(&self, rows: &mut EncodedRows) {
        let names = |rows: &mut EncodedRows, delimiter: u8, write: &dyn Fn(&str, &mut BytesMut)| {
            for (index, column) in self.columns.iter().enumerate() {
                if index > 0 {
                    rows.bytes.put_u8(delimiter);
                }
                write(&column.name, &mut rows.bytes);
            }
            rows.end_line();
        };
        match &self.style {
            RowStyle::Text { delimiter, header: true, .. } => {
                let escapes = text_escapes(*delimiter);
                names(rows, *delimiter, &|name, out| write_escaped(name, &escapes, out));
            }
            RowStyle::Csv { delimiter, header: true, quote, escape, null } => {
                let quoting = CsvQuoting::new(*delimiter, *quote, *escape, null, self.columns.len());
                names(rows, *delimiter, &|name, out| quoting.write(name, false, out));
            }
            RowStyle::Binary => {
                rows.bytes.put_slice(SIGNATURE);
                // No flags, no header extension.
                rows.bytes.put_u64(0);
            }
            RowStyle::Text { .. } | RowStyle::Csv { .. } => {}
        }
    }

    /// Appends the rows of `batch`.
    pub(crate) fn write_batch(&self, batch: &RecordBatch, rows: &mut EncodedRows) -> SqlResult<()> {
        match &self.style {
            RowStyle::Binary => {
                let mut encoders = self
                    .columns
                    .iter()
                    .zip(batch.columns())
                    .map(|(column, values)| BinaryEncoder::new(values, &column.sql_type))
                    .collect::<SqlResult<Vec<_>>>()?;
                let count = i16::try_from(encoders.len()).expect("a table has at most 1,600 columns");
                for row in 0..batch.num_rows() {
                    rows.bytes.put_i16(count);
                    for encoder in &mut encoders {
                        encoder.write_field(row, &mut rows.bytes);
                    }
                    rows.ends.push(rows.bytes.len());
                }
            }
            RowStyle::Text { delimiter, null, .. } => {
                let escapes = text_escapes(*delimiter);
                self.write_lines(batch, rows, *delimiter, null, |_, text, out| write_escaped(text, &escapes, out))?;
            }
            RowStyle::Csv { delimiter, null, quote, escape, .. } => {
                let quoting = CsvQuoting::new(*delimiter, *quote, *escape, null, self.columns.len());
                self.write_lines(batch, rows, *delimiter, null, |column, text, out| {
                    quoting.write(text, column.force_quote, out);
                })?;
            }
        }
        Ok(())
    }

    /// Appends the trailer, in binary.
    pub(crate) fn write_trailer(&self, rows: &mut EncodedRows) {
        if matches!(self.style, RowStyle::Binary) {
            rows.bytes.put_i16(TRAILER);
            rows.ends.push(rows.bytes.len());
        }
    }

    fn write_lines(
        &self,
        batch: &RecordBatch,
        rows: &mut EncodedRows,
        delimiter: u8,
        null: &str,
        write: impl Fn(&Column, &str, &mut BytesMut),
    ) -> SqlResult<()> {
        let mut encoders = self
            .columns
            .iter()
            .zip(batch.columns())
            .map(|(column, values)| Ok((column, TextEncoder::new(values, &column.sql_type, &self.text_style)?)))
            .collect::<SqlResult<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (index, (column, encoder)) in encoders.iter_mut().enumerate() {
                if index > 0 {
                    rows.bytes.put_u8(delimiter);
                }
                match encoder.text(row) {
                    None => rows.bytes.put_slice(null.as_bytes()),
                    Some(text) => write(column, text, &mut rows.bytes),
                }
            }
            rows.end_line();
        }
        Ok(())
    }
}

impl EncodedRows {
    fn end_line(&mut self) {
        self.bytes.put_u8(b'\n');
        self.ends.push(self.bytes.len());
    }
}

/// Returns for each byte that text format escapes the byte behind the backslash, and 0 for all others.
fn text_escapes(delimiter: u8) -> [u8; 256] {
    let mut escapes = [0; 256];
    escapes[usize::from(delimiter)] = delimiter;
    for (byte, letter) in
        [(b'\\', b'\\'), (0x08, b'b'), (0x0c, b'f'), (b'\n', b'n'), (b'\r', b'r'), (b'\t', b't'), (0x0b, b'v')]
    {
        escapes[usize::from(byte)] = letter;
    }
    escapes
}

fn write_escaped(text: &str, escapes: &[u8; 256], out: &mut BytesMut) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| escapes[usize::from(*byte)] != 0) {
        out.put_slice(&rest[..at]);
        out.put_u8(b'\\');
        out.put_u8(escapes[usize::from(rest[at])]);
        rest = &rest[at + 1..];
    }
    out.put_slice(rest);
}

/// CSV quoting rules.
struct CsvQuoting<'a> {
    quote: u8,
    escape: u8,
    null: &'a str,
    is_single_column: bool,
    needs_quotes: [bool; 256],
}

impl<'a> CsvQuoting<'a> {
    fn new(delimiter: u8, quote: u8, escape: u8, null: &'a str, columns: usize) -> Self {
        let mut needs_quotes = [false; 256];
        for byte in [delimiter, quote, b'\n', b'\r'] {
            needs_quotes[usize::from(byte)] = true;
        }
        Self { quote, escape, null, is_single_column: columns == 1, needs_quotes }
    }

    fn write(&self, text: &str, force: bool, out: &mut BytesMut) {
        let is_quoted = force
            || text == self.null
            || text.bytes().any(|byte| self.needs_quotes[usize::from(byte)])
            // Unquoted and alone on a line, it would be the end-of-data marker.
            || (self.is_single_column && text == "\\.");
        if !is_quoted {
            out.put_slice(text.as_bytes());
            return;
        }
        out.put_u8(self.quote);
        let mut rest = text.as_bytes();
        while let Some(at) = memchr::memchr2(self.quote, self.escape, rest) {
            out.put_slice(&rest[..at]);
            out.put_u8(self.escape);
            out.put_u8(rest[at]);
            rest = &rest[at + 1..];
        }
        out.put_slice(rest);
        out.put_u8(self.quote);
    }
}
