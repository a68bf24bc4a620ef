//! Rows as DataRow messages, encoded value by value directly into the output buffer.

use binder::OutputColumn;
use bytes::{BufMut, BytesMut};
use key_lookup::KeyLookupRows;
use pgwire::messages::data::{FieldDescription, RowDescription};
use session::result_rows::{BufferedRows, Rows, SendProgress};
use types::{Condition, SqlError, SqlResult};
use value_codec::encode::{Format, TextStyle};

use crate::buffered_transport::Outbox;
use crate::client_result_sink::connection_lost;

#[cfg(test)]
mod tests;

/// Sends up to `rows_max` rows as DataRow messages; waits for the client, so that buffered rows are bounded. Dropping
/// the future leaves complete messages in the buffer.
pub(crate) async fn send(
    rows: &mut Rows,
    outbox: &mut Outbox,
    formats: &[Format],
    rows_max: Option<u64>,
) -> SqlResult<SendProgress> {
    let mut sent = 0;
    while rows_max.is_none_or(|rows_max| sent < rows_max) {
        let has_row = match rows.try_fetch().await? {
            Some(found) => found,
            None => {
                // Sends buffered rows before waiting for more.
                outbox.flush_counting_wait().await.map_err(connection_lost)?;
                rows.fetch().await?
            }
        };
        if !has_row {
            return Ok(SendProgress { rows: sent, finished: true });
        }
        let width = rows.prepare(formats)?;
        while rows.has_row() && rows_max.is_none_or(|rows_max| sent < rows_max) {
            put_row(width, &mut outbox.buffer, |out| rows.write_row(out))?;
            rows.advance();
            sent += 1;
            outbox.flush_if_full().await.map_err(connection_lost)?;
        }
    }
    Ok(SendProgress { rows: sent, finished: false })
}

/// Appends complete rows as DataRow messages and returns their number.
pub(crate) fn send_key_lookup_rows(
    rows: KeyLookupRows,
    columns: &[OutputColumn],
    formats: &[Format],
    style: &TextStyle,
    out: &mut BytesMut,
) -> SqlResult<u64> {
    let mut part = BufferedRows::new(rows);
    let width = part.prepare(columns, formats, style)?;
    while part.has_row() {
        put_row(width, out, |out| part.write_row(out))?;
        part.advance();
    }
    Ok(part.rows_taken() as u64)
}

/// Appends a DataRow message of `width` values, which `write` appends.
fn put_row(width: usize, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut) -> SqlResult<()>) -> SqlResult<()> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_u32(0);
    out.put_u16(column_count(width)?);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error);
    }
    let Ok(length) = i32::try_from(out.len() - start - 1) else {
        out.truncate(start);
        return Err(SqlError::new(Condition::ProgramLimitExceeded, "a row is larger than a protocol message can be"));
    };
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn column_count(count: usize) -> SqlResult<u16> {
    u16::try_from(count).map_err(|_| {
        SqlError::new(Condition::ProgramLimitExceeded, "a result has more columns than the protocol can send")
    })
}

/// Builds the RowDescription of columns.
pub(crate) fn row_description(columns: &[OutputColumn], formats: &[Format]) -> RowDescription {
    let field = |(column, format): (&OutputColumn, &Format)| {
        // These fields are signed in the protocol; clients read OIDs back as unsigned.
        let table = column.table.map_or(0, |table| table.0.cast_signed());
        let attribute = column.column.and_then(|column| i16::try_from(column.0).ok()).unwrap_or(0);
        FieldDescription::new(
            column.name.clone(),
            table,
            attribute,
            column.sql_type.oid(),
            column.sql_type.typlen(),
            column.sql_type.typmod(),
            format_code(*format),
        )
    };
    RowDescription::new(columns.iter().zip(formats).map(field).collect())
}

pub(crate) fn format_code(format: Format) -> i16 {
    match format {
        Format::Text => 0,
        Format::Binary => 1,
    }
}
