//! COPY FROM in format parquet: columns are matched by name and cast to the table's types as in an assignment.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringViewArray};
use arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options};
use arrow::datatypes::{DataType, SchemaRef};
use binder::CopyFromPlan;
use bytes::{Bytes, BytesMut};
use executor::statement_progress::StatementProgress;
use external_files::cannot_read;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use shards::ExternalFile;
use shards::stored_types::decode_stored;
use storage_error::from_shards;
use tokio_util::sync::CancellationToken;
use types::interrupt::canceled_error;
use types::text::DateContext;
use types::{Condition, SqlError, SqlResult, SqlType};
use value_codec::decode::ColumnBuilder;

use super::input_source::Inputs;

/// Maximum bytes of a file from a client, which is buffered in memory because Parquet is read from its end.
const STDIN_BYTES_MAX: usize = 1 << 30;

/// Reads the rows of all files, in order, as batches of the columns of `plan`.
pub(super) fn read_rows(
    plan: &CopyFromPlan,
    inputs: Inputs,
    dates: DateContext,
    progress: Arc<StatementProgress>,
    cancel: CancellationToken,
) -> BoxStream<'static, SqlResult<RecordBatch>> {
    let columns: Arc<[ParquetTarget]> = plan
        .columns
        .iter()
        .map(|column| ParquetTarget { name: column.name.clone(), sql_type: column.sql_type.clone() })
        .collect();
    let table = plan.table.name.clone();
    open_files(inputs)
        .and_then(move |file| {
            let (columns, table, progress) = (Arc::clone(&columns), table.clone(), Arc::clone(&progress));
            async move {
                let context = format!("COPY {table}, file \"{}\"", file.name());
                let place = {
                    let context = context.clone();
                    move |error: SqlError| error.with_context(context.clone())
                };
                let reading = FileConversion::new(columns, file.schema(), dates).map_err(&place)?;
                let batches = file.read(&reading.projection).map_err(file_error).map_err(&place)?;
                let converted = batches.map(move |batch| {
                    let batch =
                        batch.map_err(file_error).and_then(|batch| reading.convert_batch(&batch)).map_err(&place)?;
                    progress.add_tuples(batch.num_rows());
                    Ok(batch)
                });
                Ok(converted.boxed())
            }
        })
        .try_flatten()
        .take_until(cancel.clone().cancelled_owned())
        // A canceled stream must end with an error, as it would otherwise look complete.
        .chain(
            stream::once(async move { if cancel.is_cancelled() { Some(Err(canceled_error())) } else { None } })
                .filter_map(std::future::ready),
        )
        .boxed()
}

/// Opens the inputs one after the other.
fn open_files(inputs: Inputs) -> BoxStream<'static, SqlResult<ExternalFile>> {
    match inputs {
        Inputs::Client(data) => stream::once(async move {
            let bytes = buffer_stdin(data).await?;
            ExternalFile::open_bytes("STDIN", bytes).await.map_err(file_error)
        })
        .boxed(),
        Inputs::Files(paths) => stream::iter(paths)
            .then(async |path| {
                ExternalFile::open_path(&path).await.map_err(|error| match error {
                    shards::Error::File { source, .. } => cannot_read(&path, &source),
                    other => file_error(other),
                })
            })
            .boxed(),
        Inputs::Objects(objects, found) => stream::iter(found)
            .then(move |object| {
                let objects = objects.clone();
                async move { ExternalFile::open_object(&objects, &object.name, object.bytes).await.map_err(file_error) }
            })
            .boxed(),
    }
}

/// Converts an error of a file: a malformed file is bad data, `22P04`.
fn file_error(error: shards::Error) -> SqlError {
    let is_format = matches!(error, shards::Error::Decode { .. });
    let mut told = from_shards(error);
    if is_format {
        told.condition = Condition::BadCopyFileFormat;
    }
    told
}

/// Buffers the file that a client sends.
async fn buffer_stdin(mut data: BoxStream<'static, SqlResult<Bytes>>) -> SqlResult<Bytes> {
    let mut all = BytesMut::new();
    while let Some(bytes) = data.next().await {
        all.extend_from_slice(&bytes?);
        if STDIN_BYTES_MAX < all.len() {
            return Err(SqlError::new(Condition::ProgramLimitExceeded, "a Parquet file from STDIN exceeds 1 GB")
                .with_hint("Put the file where the server reads it: COPY … FROM 's3://…'."));
        }
    }
    Ok(all.freeze())
}

/// Target column.
struct ParquetTarget {
    name: String,
    sql_type: SqlType,
}

/// Conversion of the batches of one file to the target columns.
struct FileConversion {
    columns: Arc<[ParquetTarget]>,
    /// Positions of the columns to read from the file, ascending.
    projection: Vec<usize>,
    /// Index in `read` of each target column.
    read_positions: Vec<usize>,
    dates: DateContext,
}

impl FileConversion {
    fn new(columns: Arc<[ParquetTarget]>, file: &SchemaRef, dates: DateContext) -> SqlResult<Self> {
        let mut positions = Vec::with_capacity(columns.len());
        for target in columns.iter() {
            let position = find_column(file, &target.name)?;
            let found = file.field(position);
            let from = SqlType::from_arrow_field(found);
            if !from.as_ref().is_some_and(|from| is_assignable(from, found.data_type(), &target.sql_type)) {
                let from = from.map_or_else(|| found.data_type().to_string(), |from| from.to_string());
                let (name, wanted) = (&target.name, &target.sql_type);
                let message = format!("column \"{name}\" is of type {wanted} but that of the file is of type {from}");
                return Err(SqlError::new(Condition::DatatypeMismatch, message).with_column(name));
            }
            positions.push(position);
        }
        let mut read = positions.clone();
        read.sort_unstable();
        read.dedup();
        let place = |position| read.binary_search(position).expect("every position is read");
        let places = positions.iter().map(place).collect();
        Ok(Self { columns, projection: read, read_positions: places, dates })
    }

    fn convert_batch(&self, batch: &RecordBatch) -> SqlResult<RecordBatch> {
        let mut values = Vec::with_capacity(self.columns.len());
        let mut fields = Vec::with_capacity(self.columns.len());
        for (target, place) in self.columns.iter().zip(&self.read_positions) {
            values.push(self.convert(batch.column(*place), target)?);
            fields.push(target.sql_type.arrow_field(&target.name, true));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(arrow::datatypes::Schema::new(fields)), values, &options).map_err(
            |error| SqlError::internal(format!("could not convert rows of a Parquet file for COPY FROM: {error}")),
        )
    }

    #[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until its text is checked or not")]
    fn convert(&self, values: &ArrayRef, target: &ParquetTarget) -> SqlResult<ArrayRef> {
        let wanted = target.sql_type.arrow_type();
        let is_free = match &target.sql_type {
            SqlType::Varchar(Some(_)) | SqlType::Char(_) | SqlType::Json | SqlType::Jsonb => false,
            SqlType::Varchar(None)
            | SqlType::Bool
            | SqlType::Int2
            | SqlType::Int4
            | SqlType::Int8
            | SqlType::Numeric { .. }
            | SqlType::Float4
            | SqlType::Float8
            | SqlType::Text
            | SqlType::Date
            | SqlType::Time
            | SqlType::Timestamp
            | SqlType::TimestampTz
            | SqlType::Interval
            | SqlType::Bytea
            | SqlType::Uuid
            | SqlType::Array(_)
            | SqlType::Oid
            | SqlType::Name
            | SqlType::InternalChar
            | SqlType::Regclass
            | SqlType::Regtype
            | SqlType::Regproc
            | SqlType::Regnamespace
            | SqlType::Regrole
            | SqlType::Regprocedure
            | SqlType::Regoperator
            | SqlType::Int2Vector
            | SqlType::OidVector
            | SqlType::Unknown => !is_text(values.data_type()) || wanted == DataType::Utf8View,
        };
        if target.sql_type == SqlType::Interval && matches!(values.data_type(), DataType::FixedSizeBinary(_)) {
            return decode_stored(values, &target.sql_type).map_err(from_shards);
        }
        if is_free {
            // A value that does not fit is an error, not NULL.
            let options = CastOptions { safe: false, ..CastOptions::default() };
            return cast_with_options(values, &wanted, &options).map_err(|error| {
                let message = format!("value out of range for type {}", target.sql_type);
                SqlError::new(Condition::NumericValueOutOfRange, message)
                    .with_detail(error.to_string())
                    .with_column(&target.name)
            });
        }
        // Text is parsed like a literal of the type: checked, padded, normalized.
        let text = cast(values, &DataType::Utf8View).map_err(|error| SqlError::internal(error.to_string()))?;
        if is_valid_as_is(text.as_string_view(), &target.sql_type) {
            return Ok(text);
        }
        let mut builder = ColumnBuilder::new(&target.sql_type, &self.dates, values.len());
        for value in text.as_string_view() {
            match value {
                Some(value) => builder.push_text(value)?,
                None => builder.push_null(),
            }
        }
        Ok(builder.finish())
    }
}

/// Finds the file's column called `name`, or the only one whose name differs only in case.
fn find_column(file: &SchemaRef, name: &str) -> SqlResult<usize> {
    if let Some((position, _)) = file.fields().find(name) {
        return Ok(position);
    }
    let alike = |field: &str| field.to_lowercase() == name.to_lowercase();
    let mut found = file.fields().iter().enumerate().filter(|(_, field)| alike(field.name()));
    match (found.next(), found.next()) {
        (Some((position, _)), None) => Ok(position),
        _ => Err(SqlError::new(Condition::UndefinedColumn, format!("the file has no column \"{name}\""))),
    }
}

/// Returns whether values of a file's column can be assigned to a column of the table.
fn is_assignable(from: &SqlType, data_type: &DataType, to: &SqlType) -> bool {
    if is_text(data_type) {
        return !matches!(to, SqlType::Array(_));
    }
    let is_integer = |sql_type: &SqlType| matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8);
    let is_decimal = |sql_type: &SqlType| matches!(sql_type, SqlType::Numeric { .. });
    let is_float = |sql_type: &SqlType| matches!(sql_type, SqlType::Float4 | SqlType::Float8);
    let is_moment = |sql_type: &SqlType| matches!(sql_type, SqlType::Timestamp | SqlType::TimestampTz);
    let fits = match (from, to) {
        (SqlType::Array(from), SqlType::Array(to)) => from == to,
        (SqlType::Date, to) if is_moment(to) => true,
        (SqlType::Uuid | SqlType::Bytea, SqlType::Interval) => return *data_type == DataType::FixedSizeBinary(16),
        (from, to) if is_integer(from) => is_integer(to) || is_decimal(to) || is_float(to),
        (from, to) if is_decimal(from) => is_decimal(to) || is_float(to),
        (from, to) if is_float(from) => is_float(to),
        (from, to) if is_moment(from) => is_moment(to),
        (from, to) => from == to,
    };
    fits && can_cast_types(data_type, &to.arrow_type())
}

/// Returns whether strings are valid values of a type as they are, judged by their lengths.
fn is_valid_as_is(texts: &StringViewArray, sql_type: &SqlType) -> bool {
    let mut lengths = texts.iter().flatten().map(str::len);
    match sql_type {
        SqlType::Varchar(Some(most)) => lengths.all(|length| length <= *most as usize),
        // In ASCII, a byte is a character.
        SqlType::Char(Some(length)) => texts.is_ascii() && lengths.all(|bytes| bytes == *length as usize),
        _ => false,
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        other => matches!(other, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    }
}
