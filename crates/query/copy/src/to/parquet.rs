//! COPY TO in format parquet: writes a standard Parquet file with the encoder of shards.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use binder::OutputColumn;
use bytes::{Bytes, BytesMut};
use executor::{RowStream, StatementProgress};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use shards::{ColumnDef, Encoder, WriteOptions};
use storage_error::from_shards;
use types::{ColumnId, Condition, SqlError, SqlResult};

use super::copy_to::CopyChunk;

/// Encodes the rows of a query as a stream of the file's bytes.
///
/// # Errors
/// `42701` for columns with the same name, which a file cannot have.
pub(super) fn encode_stream(
    rows: RowStream,
    progress: Arc<StatementProgress>,
) -> SqlResult<BoxStream<'static, SqlResult<CopyChunk>>> {
    let columns = columns(&rows.columns)?;
    let encoder = Some(Encoder::new("the file", &columns, WriteOptions::default()));
    let state = ParquetStream { rows, columns, encoder, progress };
    Ok(stream::unfold(state, async |mut state| Some((state.next().await?, state))).boxed())
}

fn columns(output: &[OutputColumn]) -> SqlResult<Vec<ColumnDef>> {
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(output.len());
    for (id, column) in (1..).zip(output) {
        if columns.iter().any(|known| known.name == column.name) {
            let message = format!("column \"{}\" specified more than once", column.name);
            return Err(SqlError::new(Condition::DuplicateColumn, message)
                .with_hint("Columns of a Parquet file need names of their own."));
        }
        columns.push(ColumnDef {
            id: ColumnId(id),
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            nullable: true,
            missing: None,
        });
    }
    Ok(columns)
}

/// State of the stream.
struct ParquetStream {
    rows: RowStream,
    columns: Vec<ColumnDef>,
    /// Encoder; `None` after the end of the file or an error.
    encoder: Option<Encoder>,
    progress: Arc<StatementProgress>,
}

impl ParquetStream {
    async fn next(&mut self) -> Option<SqlResult<CopyChunk>> {
        let mut encoder = self.encoder.take()?;
        let piece = match self.rows.stream.next().await {
            Some(Ok(batch)) => {
                let encoded = encode(&self.columns, &mut encoder, &batch).await;
                self.encoder = encoded.is_ok().then_some(encoder);
                encoded.map(|bytes| (bytes, batch.num_rows()))
            }
            Some(Err(error)) => Err(error),
            None => encoder.finish().await.map(|end| (concat_bytes([end.pages, end.tail]), 0)).map_err(from_shards),
        };
        Some(piece.map(|(bytes, rows)| {
            self.progress.add_tuples(rows);
            self.progress.add_bytes(bytes.len());
            CopyChunk { bytes, ends: Vec::new(), rows: rows as u64 }
        }))
    }
}

/// Encodes a batch, and returns the bytes of the file that are complete.
async fn encode(columns: &[ColumnDef], encoder: &mut Encoder, batch: &RecordBatch) -> SqlResult<Bytes> {
    let mut values = Vec::with_capacity(columns.len());
    let mut fields = Vec::with_capacity(columns.len());
    for (column, found) in columns.iter().zip(batch.columns()) {
        let field = column.sql_type.arrow_field(&column.name, true);
        values.push(cast(found, field.data_type()).map_err(batch_error)?);
        fields.push(field);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), values).map_err(batch_error)?;
    Ok(concat_bytes(encoder.write(&batch).await.map_err(from_shards)?))
}

fn concat_bytes(parts: impl IntoIterator<Item = Bytes>) -> Bytes {
    let mut all = BytesMut::new();
    parts.into_iter().for_each(|part| all.extend_from_slice(&part));
    all.freeze()
}

fn batch_error(error: ArrowError) -> SqlError {
    SqlError::internal(format!("rows of a query do not match the columns of their Parquet file: {error}"))
}
