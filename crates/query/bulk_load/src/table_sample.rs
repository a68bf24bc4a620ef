//! The sample of a table's rows in the catalog, and its update as the table grows.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use catalog::{Sample, Table, TableShards};
use types::{SqlError, SqlResult};

/// Maximum encoded bytes of a sample, which is stored in the catalog: with large rows it has fewer of them.
const BYTES_MAX: usize = 4 << 20;

/// Reciprocal of the growth that triggers a new sample: a small load into a large table does not rewrite its sample.
const GROWTH_DIVISOR: u64 = 4;

/// Returns the schema of samples: the columns of the table, named by their ids.
pub fn schema(table: &Table) -> SchemaRef {
    let field = |column: &catalog::Column| column.sql_type.arrow_field(&column.id.to_string(), true);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// Gives a batch of the table's rows the schema of samples.
pub fn with_sample_schema(batch: &RecordBatch, table: &Table) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema(table), batch.columns().to_vec(), &options).map_err(sample_error)
}

/// Computes the table's sample after a load of `rows` rows, sampled as `added`; `None` if the old one suffices.
pub fn next_sample(
    shards: &TableShards,
    added: &RecordBatch,
    rows: u64,
    table: &Table,
) -> SqlResult<Option<Arc<Sample>>> {
    let all = shards.rows + rows;
    let previous = shards.sample.as_deref();
    if previous.is_some_and(|known| all <= known.table_rows + known.table_rows / GROWTH_DIVISOR) {
        return Ok(None);
    }
    let schema = schema(table);
    let old = match previous {
        Some(known) => decode_sample(known, &schema).unwrap_or_else(|_| RecordBatch::new_empty(Arc::clone(&schema))),
        None => RecordBatch::new_empty(Arc::clone(&schema)),
    };
    // The sample of this load also represents rows that were added since the old sample.
    let old_of = previous.map_or(0, |known| known.table_rows);
    let (old_rows, added_rows) = shares(old.num_rows(), old_of, added.num_rows(), all.saturating_sub(old_of));
    let chosen = [take_evenly(&old, old_rows), take_evenly(added, added_rows)];
    let mut sample = concat_batches(&schema, &chosen).map_err(sample_error)?;
    loop {
        let ipc = encode_sample(&sample).map_err(sample_error)?;
        let count = sample.num_rows();
        if ipc.len() <= BYTES_MAX || count == 0 {
            return Ok(Some(Arc::new(Sample::new(count as u64, all, ipc))));
        }
        let half = take_evenly(&sample, count / 2);
        sample = concat_batches(&schema, [&half]).map_err(sample_error)?;
    }
}

/// Returns the rows to take of two samples, in proportion to the rows that each represents.
fn shares(first: usize, first_of: u64, second: usize, second_of: u64) -> (usize, usize) {
    if first + second <= Sample::ROW_COUNT_MAX {
        return (first, second);
    }
    let capacity = Sample::ROW_COUNT_MAX as u128;
    let wanted = capacity * u128::from(first_of) / u128::from((first_of + second_of).max(1));
    let wanted = usize::try_from(wanted).expect("a share is at most the capacity");
    let first = first.min(wanted.max(Sample::ROW_COUNT_MAX.saturating_sub(second)));
    (first, second.min(Sample::ROW_COUNT_MAX - first))
}

/// Returns `count` evenly spread rows of the batch.
fn take_evenly(batch: &RecordBatch, count: usize) -> RecordBatch {
    if batch.num_rows() <= count {
        return batch.clone();
    }
    let indices = (0..count).map(|index| (index * batch.num_rows() / count) as u32);
    let indices = arrow::array::UInt32Array::from_iter_values(indices);
    arrow::compute::take_record_batch(batch, &indices).expect("the indices are below the number of rows")
}

fn encode_sample(batch: &RecordBatch) -> Result<Bytes, ArrowError> {
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(batch)?;
    writer.finish()?;
    drop(writer);
    Ok(Bytes::from(bytes))
}

/// Decodes a sample to the table's present columns; those that were added since are NULL.
fn decode_sample(sample: &Sample, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let reader = StreamReader::try_new(Cursor::new(&sample.ipc), None)?;
    let written = reader.schema();
    let batches = reader.collect::<Result<Vec<_>, _>>()?;
    let rows = concat_batches(&written, &batches)?;
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| match rows.column_by_name(field.name()) {
            Some(values) if values.data_type() == field.data_type() => Arc::clone(values),
            _ => new_null_array(field.data_type(), rows.num_rows()),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn sample_error(error: ArrowError) -> SqlError {
    SqlError::internal(format!("could not build the sample of a table's rows: {error}"))
}
