//! Rows of a result: computed as they are fetched, encoded value by value as they are sent.

use std::sync::Arc;
use std::task::Poll;

use arrow::array::RecordBatch;
use binder::OutputColumn;
use bytes::BytesMut;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use key_lookup::{KeyLookupRows, StoredRows};
use tokio_util::sync::DropGuard;
use txn::Snapshot;
use types::{SqlError, SqlResult};
use value_codec::encode::{ColumnEncoder, Format, StoredEncoder, TextStyle};

use crate::cluster_slot::AdmissionGrant;
use crate::snapshot_age::snapshot_too_old;

/// Columns of a result, shared by a statement, its portals and their rows.
pub type Columns = Arc<[OutputColumn]>;

/// Open result that is sent to the client, maybe in parts.
pub struct Rows {
    pub columns: Columns,
    /// Batches that have not been fetched yet.
    stream: BoxStream<'static, SqlResult<RecordBatch>>,
    style: TextStyle,
    /// Fetched rows that have not all been sent yet.
    buffered: Option<BufferedRows>,
    /// Number of rows sent or skipped so far.
    position: u64,
    finished: bool,
    /// Keeps the query and its snapshot alive while rows are read.
    guard: Option<QueryGuard>,
    /// True once the snapshot was released because of its age.
    is_released: bool,
}

/// Guard that keeps a query running, and the objects that it reads from being deleted.
pub struct QueryGuard {
    /// Cancels the query when dropped.
    pub _cancel: DropGuard,
    pub _snapshot: Snapshot,
    /// Cluster slot and worker lease; `None` if it needs no worker.
    pub(crate) admission: Option<AdmissionGrant>,
    /// Time at which the snapshot was taken.
    pub snapshot_us: i64,
}

/// Rows in memory with an encoder and a position.
pub struct BufferedRows {
    rows: RowSource,
    next: usize,
    /// Encoder for `formats`.
    encoder: Option<RowEncoder>,
    formats: Vec<Format>,
}

enum RowSource {
    Batch(RecordBatch),
    Stored(StoredRows),
}

enum RowEncoder {
    Columns(Vec<ColumnEncoder>),
    Stored(Box<StoredEncoder>),
}

/// Progress of a send or a skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendProgress {
    pub rows: u64,
    /// True if there is no further row.
    pub finished: bool,
}

impl Rows {
    pub fn new(
        stream: BoxStream<'static, SqlResult<RecordBatch>>,
        columns: impl Into<Columns>,
        style: TextStyle,
        guard: Option<QueryGuard>,
    ) -> Self {
        let columns = columns.into();
        Self { columns, stream, style, buffered: None, position: 0, finished: false, guard, is_released: false }
    }

    /// Creates a result whose rows are all in memory.
    pub fn from_key_lookup_rows(
        rows: KeyLookupRows,
        columns: Columns,
        style: TextStyle,
        guard: Option<QueryGuard>,
    ) -> Self {
        let part = BufferedRows::new(rows);
        Self { buffered: Some(part), ..Self::new(stream::empty().boxed(), columns, style, guard) }
    }

    /// Returns the time of the snapshot; `None` if nothing is read any more.
    pub fn snapshot_us(&self) -> Option<i64> {
        self.guard.as_ref().map(|guard| guard.snapshot_us)
    }

    /// Returns the cluster slot and lease of the query; `None` once all rows are fetched.
    pub(crate) fn admission(&self) -> Option<&AdmissionGrant> {
        self.guard.as_ref()?.admission.as_ref()
    }

    /// Releases the snapshot, so that fetching further rows is an error.
    pub fn release(&mut self) {
        (self.stream, self.buffered, self.guard) = (stream::empty().boxed(), None, None);
        self.is_released = true;
    }

    /// Returns the number of rows sent or skipped so far.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Skips up to `rows_max` rows.
    pub async fn skip(&mut self, rows_max: Option<u64>) -> SqlResult<SendProgress> {
        let mut skipped = 0;
        while rows_max.is_none_or(|rows_max| skipped < rows_max) {
            if !self.fetch().await? {
                return Ok(SendProgress { rows: skipped, finished: true });
            }
            let part = self.buffered.as_mut().expect("a successful fetch leaves a part with rows");
            let left = (part.rows.len() - part.next) as u64;
            let step = rows_max.map_or(left, |rows_max| left.min(rows_max - skipped));
            part.next += usize::try_from(step).expect("a step is at most the rows of one batch");
            skipped += step;
            self.position += step;
        }
        Ok(SendProgress { rows: skipped, finished: false })
    }

    /// Fetches a batch unless a row is left; `false` at the end, `None` if the next batch has to be waited for.
    pub async fn try_fetch(&mut self) -> SqlResult<Option<bool>> {
        if self.is_released {
            return Err(snapshot_too_old());
        }
        while !self.finished {
            if self.buffered.as_ref().is_some_and(BufferedRows::has_row) {
                return Ok(Some(true));
            }
            self.buffered = None;
            match futures::poll!(self.stream.next()) {
                Poll::Ready(next) => self.accept_batch(next)?,
                Poll::Pending => return Ok(None),
            }
        }
        Ok(Some(false))
    }

    /// Does the same as [`Rows::try_fetch`], and waits for the next batch.
    pub async fn fetch(&mut self) -> SqlResult<bool> {
        loop {
            if let Some(found) = self.try_fetch().await? {
                return Ok(found);
            }
            let next = self.stream.next().await;
            self.accept_batch(next)?;
        }
    }

    fn accept_batch(&mut self, next: Option<SqlResult<RecordBatch>>) -> SqlResult<()> {
        match next.transpose()? {
            Some(rows) => self.buffered = Some(BufferedRows::from_batch(rows)),
            None => {
                self.finished = true;
                self.guard = None;
            }
        }
        Ok(())
    }

    /// Prepares the fetched rows to be encoded in these formats, and returns the number of values per row.
    pub fn prepare(&mut self, formats: &[Format]) -> SqlResult<usize> {
        let part = self
            .buffered
            .as_mut()
            .ok_or_else(|| SqlError::internal("result rows are sent before they were fetched"))?;
        part.prepare(&self.columns, formats, &self.style)
    }

    /// Whether a fetched row is left.
    pub fn has_row(&self) -> bool {
        self.buffered.as_ref().is_some_and(BufferedRows::has_row)
    }

    /// Appends the values of the next row, each preceded by its length.
    pub fn write_row(&mut self, out: &mut BytesMut) -> SqlResult<()> {
        let part = self
            .buffered
            .as_mut()
            .ok_or_else(|| SqlError::internal("result rows are sent before they were fetched"))?;
        part.write_row(out)
    }

    /// Advances past the row that was sent.
    pub fn advance(&mut self) {
        if let Some(part) = &mut self.buffered {
            part.advance();
            self.position += 1;
        }
    }
}

impl RowSource {
    fn from_key_lookup_rows(rows: KeyLookupRows) -> Self {
        match rows {
            KeyLookupRows::Stored(rows) => Self::Stored(rows),
            KeyLookupRows::Batch(rows) => Self::Batch(rows),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Batch(rows) => rows.num_rows(),
            Self::Stored(rows) => rows.rows().len(),
        }
    }
}

impl BufferedRows {
    pub fn new(rows: KeyLookupRows) -> Self {
        Self { rows: RowSource::from_key_lookup_rows(rows), next: 0, encoder: None, formats: Vec::new() }
    }

    fn from_batch(rows: RecordBatch) -> Self {
        Self::new(KeyLookupRows::Batch(rows))
    }

    /// Returns the number of rows taken.
    pub fn rows_taken(&self) -> usize {
        self.next
    }

    pub fn has_row(&self) -> bool {
        self.next < self.rows.len()
    }

    /// Appends the values of the next row, each preceded by its length.
    pub fn write_row(&mut self, out: &mut BytesMut) -> SqlResult<()> {
        match (&mut self.encoder, &self.rows) {
            (Some(RowEncoder::Columns(encoders)), _) => {
                for encoder in encoders {
                    encoder.write_field(self.next, out);
                }
            }
            (Some(RowEncoder::Stored(encoder)), RowSource::Stored(rows)) => {
                encoder.write_row(&rows.rows()[self.next], out)
            }
            _ => return Err(SqlError::internal("result rows are written before their encoders were prepared")),
        }
        Ok(())
    }

    /// Advances past the row that was taken.
    pub fn advance(&mut self) {
        self.next += 1;
    }

    /// Prepares the rows to be encoded in these formats, and returns the number of values per row.
    pub fn prepare(&mut self, columns: &[OutputColumn], formats: &[Format], style: &TextStyle) -> SqlResult<usize> {
        if let Some(encoder) = self.encoder.as_ref().filter(|_| self.formats == formats) {
            return Ok(encoder.width());
        }
        let sent = columns.iter().map(|column| &column.sql_type).zip(formats.iter().copied());
        if let RowSource::Stored(rows) = &self.rows {
            self.encoder = rows.encoder(sent, style.zone).map(|encoder| RowEncoder::Stored(Box::new(encoder)));
            if self.encoder.is_none() {
                self.rows = RowSource::Batch(rows.to_batch()?);
            }
        }
        if let RowSource::Batch(rows) = &self.rows {
            self.encoder = Some(RowEncoder::Columns(column_encoders(rows, columns, formats, style)?));
        }
        self.formats = formats.to_vec();
        Ok(self.encoder.as_ref().map_or(0, RowEncoder::width))
    }
}

impl RowEncoder {
    /// Returns the number of values per row.
    fn width(&self) -> usize {
        match self {
            Self::Columns(encoders) => encoders.len(),
            Self::Stored(encoder) => encoder.width(),
        }
    }
}

fn column_encoders(
    rows: &RecordBatch,
    columns: &[OutputColumn],
    formats: &[Format],
    style: &TextStyle,
) -> SqlResult<Vec<ColumnEncoder>> {
    if rows.num_columns() != columns.len() || formats.len() != columns.len() {
        return Err(SqlError::internal(format!(
            "a batch of {} columns is encoded for a result of {}",
            rows.num_columns(),
            columns.len()
        )));
    }
    let columns = rows.columns().iter().zip(columns).zip(formats);
    columns
        .map(|((values, column), format)| ColumnEncoder::new(*format, values, &column.sql_type, style))
        .collect::<SqlResult<_>>()
}
