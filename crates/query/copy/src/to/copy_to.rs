//! One COPY TO: a stream for a client, or a file on the server or in object storage.

use std::path::Path;
use std::sync::Arc;

use binder::write::{CopyFormat, CopyHeader, CopyOptions};
use binder::{CopyTarget, CopyToPlan};
use bytes::Bytes;
use executor::statement_progress::CopyKind;
use executor::{RowStream, RunContext, StatementProgress};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use objects::{ObjectWriter, Objects};
use types::{Condition, Oid, SqlError, SqlResult};
use value_codec::encode::Format;

use super::parquet;
use super::row_encoding::{Column, EncodedRows, RowFormat, RowStyle};
use crate::CopyService;
use crate::files::FileWriter;

/// Running COPY TO STDOUT.
pub struct CopyOut {
    /// Format in the message that starts the copy; CSV counts as text.
    pub format: Format,
    /// Number of columns of a row.
    pub columns: usize,
    /// Encoded rows, produced on demand; dropping the stream cancels the query.
    pub chunks: BoxStream<'static, SqlResult<CopyChunk>>,
}

/// Encoded rows of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyChunk {
    pub bytes: Bytes,
    /// End of each message in `bytes`: a row, a header or a trailer.
    pub ends: Vec<usize>,
    /// Number of rows of the query.
    pub rows: u64,
}

impl CopyService {
    /// Starts the query of COPY TO STDOUT.
    ///
    /// # Errors
    /// As [`Executor::query`](executor::Executor::query); `0A000` for format parquet.
    pub fn copy_out<'a>(&'a self, plan: &'a CopyToPlan, context: &'a RunContext) -> BoxFuture<'a, SqlResult<CopyOut>> {
        Box::pin(self.copy_out_unboxed(plan, context))
    }

    async fn copy_out_unboxed(&self, plan: &CopyToPlan, context: &RunContext) -> SqlResult<CopyOut> {
        let format = row_format(plan, context)?;
        context.progress.start_copy(copy_kind(plan));
        let rows = self.executor.start_query(&plan.query, context).await?;
        Ok(CopyOut {
            format: if plan.options.format == CopyFormat::Binary { Format::Binary } else { Format::Text },
            columns: format.columns.len(),
            chunks: encode_stream(rows, format, Arc::clone(&context.progress)),
        })
    }

    /// Runs COPY TO a file or a URL, and returns the number of rows; the file is complete then.
    ///
    /// # Errors
    /// As [`Executor::query`](executor::Executor::query); errors of the file.
    pub fn copy_to_file<'a>(&'a self, plan: &'a CopyToPlan, context: &'a RunContext) -> BoxFuture<'a, SqlResult<u64>> {
        Box::pin(self.copy_to_file_unboxed(plan, context))
    }

    async fn copy_to_file_unboxed(&self, plan: &CopyToPlan, context: &RunContext) -> SqlResult<u64> {
        let mut sink = self.open_sink(plan, context)?;
        let mut pieces = match plan.options.format {
            CopyFormat::Parquet => {
                context.progress.start_copy(copy_kind(plan));
                parquet::encode_stream(
                    self.executor.start_query(&plan.query, context).await?,
                    Arc::clone(&context.progress),
                )?
            }
            _ => self.copy_out(plan, context).await?.chunks,
        };
        let run = async move {
            let mut rows = 0;
            while let Some(piece) = pieces.next().await {
                let piece = piece?;
                rows += piece.rows;
                sink.write(piece.bytes).await?;
            }
            sink.finish().await?;
            Ok(rows)
        };
        self.executor.run_task(context, run).await
    }

    fn open_sink(&self, plan: &CopyToPlan, context: &RunContext) -> SqlResult<Sink> {
        let file = |path: &str| FileWriter::create(Path::new(path), context.query_id).map(Sink::File);
        match &plan.target {
            CopyTarget::Stdout => {
                Err(SqlError::internal("COPY TO STDOUT writes to no file or object, so it has no file sink"))
            }
            CopyTarget::File(path) => file(path),
            CopyTarget::Url(url) => match url.strip_prefix("file://") {
                Some(path) => file(path),
                None => {
                    let (folder, name) =
                        url.rsplit_once('/').filter(|(_, name)| !name.is_empty()).ok_or_else(|| {
                            let message = format!("\"{url}\" names no object to write");
                            SqlError::new(Condition::InvalidParameterValue, message)
                        })?;
                    let objects = Objects::open(folder, Arc::clone(&self.clock), Arc::clone(&self.random));
                    let writer = objects.and_then(|objects| objects.writer(name)).map_err(storage_failure)?;
                    Ok(Sink::Object(Box::new(writer)))
                }
            },
        }
    }
}

/// Target of a COPY TO other than a client.
enum Sink {
    File(FileWriter),
    Object(Box<ObjectWriter>),
}

impl Sink {
    async fn write(&mut self, bytes: Bytes) -> SqlResult<()> {
        match self {
            Sink::File(file) => file.write(&bytes),
            Sink::Object(object) => object.write(bytes).await.map_err(storage_failure),
        }
    }

    async fn finish(self) -> SqlResult<()> {
        match self {
            Sink::File(file) => file.finish(),
            Sink::Object(object) => object.finish().await.map(drop).map_err(storage_failure),
        }
    }
}

fn storage_failure(error: objects::Error) -> SqlError {
    let condition = match &error {
        objects::Error::AccessDenied { .. } => Condition::InsufficientPrivilege,
        objects::Error::NotFound { .. } => Condition::UndefinedFile,
        objects::Error::InvalidUrl { .. } | objects::Error::InvalidName { .. } => Condition::InvalidParameterValue,
        _ => Condition::IoError,
    };
    let detail = std::error::Error::source(&error).map(ToString::to_string);
    let told = SqlError::new(condition, error.to_string());
    if let Some(detail) = detail { told.with_detail(detail) } else { told }
}

fn copy_kind(plan: &CopyToPlan) -> CopyKind {
    let medium = if plan.target == CopyTarget::Stdout { "PIPE" } else { "FILE" };
    CopyKind { table: Oid(0), command: "COPY TO", medium }
}

fn row_format(plan: &CopyToPlan, context: &RunContext) -> SqlResult<RowFormat> {
    let options = &plan.options;
    let columns = plan.query.columns.iter().map(|column| Column {
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        force_quote: options.force_quote.contains(&column.name),
    });
    Ok(RowFormat { columns: columns.collect(), style: row_style(options)?, text_style: context.text_style() })
}

fn row_style(options: &CopyOptions) -> SqlResult<RowStyle> {
    let (delimiter, null) = (options.delimiter, options.null.clone());
    let header = options.header != CopyHeader::Absent;
    match options.format {
        CopyFormat::Text => Ok(RowStyle::Text { delimiter, null, header }),
        CopyFormat::Csv => Ok(RowStyle::Csv { delimiter, null, header, quote: options.quote, escape: options.escape }),
        CopyFormat::Binary => Ok(RowStyle::Binary),
        CopyFormat::Parquet => Err(SqlError::unsupported("COPY TO STDOUT in format parquet")),
    }
}

/// Encodes the rows of a query, with header and trailer.
fn encode_stream(
    rows: RowStream,
    format: RowFormat,
    progress: Arc<StatementProgress>,
) -> BoxStream<'static, SqlResult<CopyChunk>> {
    let mut encoded = EncodedRows::default();
    format.write_header(&mut encoded);
    let state = RowStreamEncoder { rows, format, progress, encoded, ended: false };
    stream::unfold(state, async |mut state| Some((state.next().await?, state))).boxed()
}

/// State of the stream.
struct RowStreamEncoder {
    rows: RowStream,
    format: RowFormat,
    progress: Arc<StatementProgress>,
    /// Encoded bytes that were not returned yet: the header, before the first batch.
    encoded: EncodedRows,
    ended: bool,
}

impl RowStreamEncoder {
    async fn next(&mut self) -> Option<SqlResult<CopyChunk>> {
        if self.ended {
            return None;
        }
        let count = match self.rows.stream.next().await.transpose() {
            Ok(Some(batch)) => self.format.write_batch(&batch, &mut self.encoded).map(|()| batch.num_rows()),
            Ok(None) => {
                self.ended = true;
                self.format.write_trailer(&mut self.encoded);
                Ok(0)
            }
            Err(error) => Err(error),
        };
        let count = match count {
            Ok(count) => count,
            Err(error) => {
                self.ended = true;
                return Some(Err(error));
            }
        };
        // Bytes behind the last end belong to the next row: the binary signature is part of the first one.
        let end = self.encoded.ends.last().copied().unwrap_or(0);
        let bytes = self.encoded.bytes.split_to(end).freeze();
        let ends = std::mem::take(&mut self.encoded.ends);
        self.progress.add_tuples(count);
        self.progress.add_bytes(bytes.len());
        Some(Ok(CopyChunk { bytes, ends, rows: count as u64 }))
    }
}
