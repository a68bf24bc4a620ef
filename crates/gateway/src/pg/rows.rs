//! Rows on their way out: batches are encoded value by value straight into the buffer that the socket empties.

use std::sync::Arc;
use std::task::Poll;

use arrow::array::RecordBatch;
use binder::OutputColumn;
use bytes::{BufMut, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use key_lookup::{PointRows, StoredRows};
use pgwire::messages::data::{FieldDescription, RowDescription};
use tokio_util::sync::DropGuard;
use txn::Snapshot;
use types::{Condition, SqlError, SqlResult};
use value_codec::encode::{ColumnEncoder, Format, StoredEncoder, TextStyle};

use crate::pg::client::lost;
use crate::pg::frontend::violation;
use crate::pg::transport::Outbox;
use crate::session::admit::Admitted;
use crate::session::age::too_old;

#[cfg(test)]
mod tests;

/// The columns of a result, which a statement, its portals and their rows share.
pub(crate) type Columns = Arc<[OutputColumn]>;

/// A result that is being sent, and may be sent in parts.
pub(crate) struct Rows {
    pub(crate) columns: Columns,
    stream: BoxStream<'static, SqlResult<RecordBatch>>,
    style: TextStyle,
    part: Option<Part>,
    /// Rows sent or passed over so far.
    position: u64,
    finished: bool,
    /// What has to live as long as rows are read.
    hold: Option<Hold>,
    /// What they are read from was let go.
    too_old: bool,
}

/// Keeps a query going, and the objects it reads from being deleted.
pub(crate) struct Hold {
    /// Stops execution when the rows are no longer wanted.
    pub(crate) _cancel: DropGuard,
    pub(crate) _snapshot: Snapshot,
    /// What it runs on; `None` where it needs no worker.
    pub(crate) admitted: Option<Admitted>,
    /// When what the snapshot shows was committed.
    pub(crate) looked_us: i64,
}

/// Rows that are there.
struct Part {
    rows: Source,
    next: usize,
    /// Prepared for the formats they were last asked for.
    encoder: Option<Encoder>,
    formats: Vec<Format>,
}

enum Source {
    Batch(RecordBatch),
    Stored(StoredRows),
}

enum Encoder {
    Columns(Vec<ColumnEncoder>),
    Stored(Box<StoredEncoder>),
}

/// How far a send got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) rows: u64,
    /// There is no further row.
    pub(crate) finished: bool,
}

impl Rows {
    pub(crate) fn new(
        stream: BoxStream<'static, SqlResult<RecordBatch>>,
        columns: impl Into<Columns>,
        style: TextStyle,
        hold: Option<Hold>,
    ) -> Self {
        let columns = columns.into();
        Self { columns, stream, style, part: None, position: 0, finished: false, hold, too_old: false }
    }

    /// Rows that are all there.
    pub(crate) fn of(rows: PointRows, columns: Columns, style: TextStyle, hold: Option<Hold>) -> Self {
        let part = Part::of(Source::of(rows));
        Self { part: Some(part), ..Self::new(stream::empty().boxed(), columns, style, hold) }
    }

    /// When what they are read from was committed; `None` where nothing is read any more.
    pub(crate) fn looked_us(&self) -> Option<i64> {
        self.hold.as_ref().map(|hold| hold.looked_us)
    }

    /// What they run on, if a worker makes them and there are more to come.
    pub(crate) fn admitted(&self) -> Option<&Admitted> {
        self.hold.as_ref()?.admitted.as_ref()
    }

    /// Ends the reading: further rows are an error.
    pub(crate) fn let_go(&mut self) {
        (self.stream, self.part, self.hold) = (stream::empty().boxed(), None, None);
        self.too_old = true;
    }

    /// Sends up to `rows_max` rows as DataRow messages; the socket's pace bounds what is buffered. Dropping the future
    /// half-way leaves whole messages in the buffer.
    pub(crate) async fn send(
        &mut self,
        outbox: &mut Outbox,
        formats: &[Format],
        rows_max: Option<u64>,
    ) -> SqlResult<Sent> {
        let mut sent = 0;
        while rows_max.is_none_or(|rows_max| sent < rows_max) {
            if !self.fetch(Some(outbox)).await? {
                return Ok(Sent { rows: sent, finished: true });
            }
            let part = self.part.as_mut().expect("fetch left one");
            part.prepare(&self.columns, formats, &self.style)?;
            while part.next < part.rows.len() && rows_max.is_none_or(|rows_max| sent < rows_max) {
                part.encode_row(&mut outbox.buffer)?;
                sent += 1;
                self.position += 1;
                outbox.flush_if_full().await.map_err(lost)?;
            }
        }
        Ok(Sent { rows: sent, finished: false })
    }

    /// Rows sent or passed over so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Passes over up to `rows_max` rows.
    pub(crate) async fn skip(&mut self, rows_max: Option<u64>) -> SqlResult<Sent> {
        let mut skipped = 0;
        while rows_max.is_none_or(|rows_max| skipped < rows_max) {
            if !self.fetch(None).await? {
                return Ok(Sent { rows: skipped, finished: true });
            }
            let part = self.part.as_mut().expect("fetch left one");
            let left = (part.rows.len() - part.next) as u64;
            let step = rows_max.map_or(left, |rows_max| left.min(rows_max - skipped));
            part.next += usize::try_from(step).expect("at most the rows of a batch");
            skipped += step;
            self.position += step;
        }
        Ok(Sent { rows: skipped, finished: false })
    }

    /// Makes sure that there is a row to take; `false` at the end. What is buffered is sent before waiting for more.
    async fn fetch(&mut self, outbox: Option<&mut Outbox>) -> SqlResult<bool> {
        if self.too_old {
            return Err(too_old());
        }
        let mut outbox = outbox;
        while !self.finished {
            if self.part.as_ref().is_some_and(|part| part.next < part.rows.len()) {
                return Ok(true);
            }
            self.part = None;
            let next = match futures::poll!(self.stream.next()) {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    if let Some(outbox) = outbox.as_deref_mut() {
                        outbox.flush_rows().await.map_err(lost)?;
                    }
                    self.stream.next().await
                }
            };
            match next.transpose()? {
                Some(rows) => self.part = Some(Part::of(Source::Batch(rows))),
                None => {
                    self.finished = true;
                    self.hold = None;
                }
            }
        }
        Ok(false)
    }
}

impl Source {
    fn of(rows: PointRows) -> Self {
        match rows {
            PointRows::Stored(rows) => Self::Stored(rows),
            PointRows::Batch(rows) => Self::Batch(rows),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Batch(rows) => rows.num_rows(),
            Self::Stored(rows) => rows.rows().len(),
        }
    }
}

impl Part {
    fn of(rows: Source) -> Self {
        Self { rows, next: 0, encoder: None, formats: Vec::new() }
    }

    fn prepare(&mut self, columns: &[OutputColumn], formats: &[Format], style: &TextStyle) -> SqlResult<()> {
        if self.encoder.is_some() && self.formats == formats {
            return Ok(());
        }
        let sent = columns.iter().map(|column| &column.sql_type).zip(formats.iter().copied());
        if let Source::Stored(rows) = &self.rows {
            self.encoder = rows.encoder(sent, style.zone).map(|encoder| Encoder::Stored(Box::new(encoder)));
            if self.encoder.is_none() {
                self.rows = Source::Batch(rows.to_batch()?);
            }
        }
        if let Source::Batch(rows) = &self.rows {
            self.encoder = Some(Encoder::Columns(column_encoders(rows, columns, formats, style)?));
        }
        self.formats = formats.to_vec();
        Ok(())
    }

    /// Appends the next row as one DataRow message.
    fn encode_row(&mut self, out: &mut BytesMut) -> SqlResult<()> {
        match (&mut self.encoder, &self.rows) {
            (Some(Encoder::Columns(encoders)), _) => put_row(encoders.len(), out, |out| {
                for encoder in encoders {
                    encoder.write_field(self.next, out);
                }
            })?,
            (Some(Encoder::Stored(encoder)), Source::Stored(rows)) => put_stored(encoder, rows, self.next, out)?,
            _ => return Err(SqlError::internal("rows that were not prepared")),
        }
        self.next += 1;
        Ok(())
    }
}

/// Appends rows that are all there as DataRow messages; how many they are.
pub(crate) fn put_all(
    rows: PointRows,
    columns: &[OutputColumn],
    formats: &[Format],
    style: &TextStyle,
    out: &mut BytesMut,
) -> SqlResult<u64> {
    let mut part = Part::of(Source::of(rows));
    part.prepare(columns, formats, style)?;
    while part.next < part.rows.len() {
        part.encode_row(out)?;
    }
    Ok(part.next as u64)
}

/// Appends one of the rows as a DataRow message.
fn put_stored(encoder: &mut StoredEncoder, rows: &StoredRows, at: usize, out: &mut BytesMut) -> SqlResult<()> {
    put_row(encoder.width(), out, |out| encoder.write_row(&rows.rows()[at], out))
}

/// Appends a DataRow message of `width` values, which `write` appends.
fn put_row(width: usize, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) -> SqlResult<()> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_u32(0);
    out.put_u16(column_count(width)?);
    write(out);
    let Ok(length) = i32::try_from(out.len() - start - 1) else {
        out.truncate(start);
        return Err(SqlError::new(Condition::ProgramLimitExceeded, "a row is larger than a message can be"));
    };
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn column_encoders(
    rows: &RecordBatch,
    columns: &[OutputColumn],
    formats: &[Format],
    style: &TextStyle,
) -> SqlResult<Vec<ColumnEncoder>> {
    if rows.num_columns() != columns.len() || formats.len() != columns.len() {
        return Err(SqlError::internal(format!(
            "a batch of {} columns for a result of {}",
            rows.num_columns(),
            columns.len()
        )));
    }
    let columns = rows.columns().iter().zip(columns).zip(formats);
    columns
        .map(|((values, column), format)| ColumnEncoder::new(*format, values, &column.sql_type, style))
        .collect::<SqlResult<_>>()
}

fn column_count(count: usize) -> SqlResult<u16> {
    u16::try_from(count).map_err(|_| SqlError::new(Condition::ProgramLimitExceeded, "too many columns in a result"))
}

/// What the client needs to know to read the rows.
pub(crate) fn row_description(columns: &[OutputColumn], formats: &[Format]) -> RowDescription {
    let field = |(column, format): (&OutputColumn, &Format)| {
        // PostgreSQL's own fields are signed here; clients read them back unsigned.
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

/// The format of each of `count` values, from the codes of a Bind message: none (all text), one for all, or one each.
pub(crate) fn formats(codes: &[i16], count: usize, what: &str, of: &str) -> SqlResult<Vec<Format>> {
    let format = |code: &i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(SqlError::new(Condition::InvalidParameterValue, format!("unsupported format code: {other}"))),
    };
    match codes {
        [] => Ok(vec![Format::Text; count]),
        [code] => Ok(vec![format(code)?; count]),
        codes if codes.len() == count => codes.iter().map(format).collect(),
        codes => Err(violation(format!("bind message has {} {what} formats but {count} {of}", codes.len()))),
    }
}

pub(crate) fn format_code(format: Format) -> i16 {
    match format {
        Format::Text => 0,
        Format::Binary => 1,
    }
}
