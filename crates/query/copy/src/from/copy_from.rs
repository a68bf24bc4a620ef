//! One COPY FROM: resolves the inputs, parses them, and writes their rows with the plan's write.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use binder::write::{CopyFormat, CopyHeader, CopyOptions, OnError};
use binder::{CopyFromPlan, CopySource, WritePlan};
use bytes::Bytes;
use catalog::Column;
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use executor::RunContext;
use executor::statement_progress::CopyKind;
use functions::error::{from_datafusion, to_datafusion};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use operators::plan_query;
use parking_lot::Mutex;
use row_locks::AttemptOutcome;
use txn::Transaction;
use types::text::DateContext;
use types::{Condition, SqlError, SqlResult};

use super::chunk_cutter::CHUNK_BYTES;
use super::input_source::Inputs;
use super::parallel_parse::{ParsedBatch, parse_rows};
use super::{
    DelimitedOptions, ErrorPolicy, HeaderMode, InputLayout, ParseProgress, RecordFormat, TargetColumn, parquet,
};
use crate::CopyService;

/// Outcome of a COPY FROM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFromOutcome {
    /// Number of rows added to the table.
    pub rows: u64,
    /// Notices for the client: the number of rows that ON_ERROR ignore skipped.
    pub notices: Vec<SqlError>,
}

impl CopyService {
    /// Runs COPY FROM and stages its rows. `stdin` is the client's data for COPY FROM STDIN; an error in it ends the
    /// COPY.
    ///
    /// # Errors
    /// Errors of the data, with file, line and column in the context; errors of [`Dml::write`](dml::Dml::write).
    pub fn copy_from<'a>(
        &'a self,
        plan: &'a CopyFromPlan,
        stdin: Option<BoxStream<'static, SqlResult<Bytes>>>,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<CopyFromOutcome>> {
        Box::pin(self.copy_from_unboxed(plan, stdin, transaction, context))
    }

    async fn copy_from_unboxed(
        &self,
        plan: &CopyFromPlan,
        stdin: Option<BoxStream<'static, SqlResult<Bytes>>>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<CopyFromOutcome> {
        let dates = context.settings.date_context(self.clock.now_us());
        let record_format = record_format_from_options(&plan.options);
        let medium = if plan.source == CopySource::Stdin { "PIPE" } else { "FILE" };
        context.progress.start_copy(CopyKind { table: plan.table.oid, command: "COPY FROM", medium });
        let mut inputs = Inputs::resolve(self, &plan.source, stdin).await?;
        context.progress.set_bytes_total(inputs.total_bytes().await?);
        let count = Arc::new(Mutex::new(ParseProgress::default()));
        let (progress, cancel) = (Arc::clone(&context.progress), context.cancel.clone());
        let batches = match record_format {
            None => parquet::read_rows(plan, inputs, dates, progress, cancel),
            Some(record_format) => {
                let layout = Arc::new(layout(plan, record_format, dates)?);
                let tolerance = ErrorPolicy { reject_limit: plan.options.reject_limit, is_verbose: false };
                parse_rows(layout, inputs.read(), tolerance, Arc::clone(&count), progress, cancel)
            }
        };
        let schema = plan.input.schema();
        let fed = {
            let schema = Arc::clone(&schema);
            batches.map(move |batch| batch.and_then(|batch| with_schema(&batch, &schema)).map_err(to_datafusion))
        };
        let write = Box::new(write_plan_over(plan, Box::pin(RecordBatchStreamAdapter::new(schema, fed))));
        let rows = match self.dml.write(&write, transaction, &context.in_this_process()).await {
            Ok(AttemptOutcome::Done(modified)) => modified.rows,
            Ok(AttemptOutcome::Conflict) => return Err(must_retry(plan)),
            Err(error) => {
                let last = count.lock().last_batch.take();
                return Err(self.add_violation_context(plan, error, last, context).await);
            }
        };
        let skipped = count.lock().skipped;
        Ok(CopyFromOutcome { rows, notices: skipped_notice(skipped).into_iter().collect() })
    }
}

impl CopyService {
    /// Adds the context of the row that violates a constraint, found by bisecting the last batch.
    async fn add_violation_context(
        &self,
        plan: &CopyFromPlan,
        error: SqlError,
        last: Option<ParsedBatch>,
        context: &RunContext,
    ) -> SqlError {
        let is_violation = matches!(error.condition, Condition::NotNullViolation | Condition::CheckViolation);
        if !is_violation || error.context.is_some() {
            return error;
        }
        let Some(last) = last else { return error };
        // All rows before `first` are valid, and one of `first..end` is not.
        let (mut first, mut end) = (0, last.batch.num_rows());
        while 1 < end - first {
            let middle = first + (end - first) / 2;
            match self.check_rows(plan, last.batch.slice(first, middle - first), context).await {
                Ok(()) => first = middle,
                Err(_) => end = middle,
            }
        }
        match self.check_rows(plan, last.batch.slice(first, end - first), context).await {
            Err(violation) if violation.context.is_none() => violation.with_context(last.row_context(first)),
            _ => error,
        }
    }

    /// Runs rows through the checks of the write.
    ///
    /// # Errors
    /// The first violated constraint.
    async fn check_rows(&self, plan: &CopyFromPlan, rows: RecordBatch, context: &RunContext) -> SqlResult<()> {
        let schema = plan.input.schema();
        let rows = with_schema(&rows, &schema)?;
        let fed = stream::once(async move { Ok(rows) });
        let rows = Box::pin(RecordBatchStreamAdapter::new(schema, fed));
        let Some(input) = write_plan_over(plan, rows).input else { return Ok(()) };
        let (stop, task) = (context.cancel.clone(), context.task_context(&input.state));
        self.executor
            .run_task(context, async move {
                let mut checked = execute_stream(plan_query(&input, &stop).await?, task).map_err(from_datafusion)?;
                while let Some(batch) = checked.next().await {
                    batch.map_err(from_datafusion)?;
                }
                Ok(())
            })
            .await
    }
}

/// Returns `40001` for a statement that would have to run again: the client's data cannot be read twice.
fn must_retry(plan: &CopyFromPlan) -> SqlError {
    let message = format!("table \"{}\" was changed by another transaction while COPY waited for it", plan.table.name);
    SqlError::new(Condition::SerializationFailure, message).with_hint("The transaction might succeed if retried.")
}

/// Returns the plan's write with `rows` as input, in one partition: rows keep their order, so that each shard is a
/// contiguous range of the input.
fn write_plan_over(plan: &CopyFromPlan, rows: SendableRecordBatchStream) -> WritePlan {
    let mut write = plan.write.clone();
    if let Some(input) = &mut write.input {
        let mut state = plan.input.with_streams(&input.state, vec![rows]);
        state.config_mut().options_mut().execution.target_partitions = 1;
        input.state = Arc::new(state);
    }
    write
}

fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> SqlResult<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)
        .map_err(|error| SqlError::internal(format!("rows of COPY do not match the schema of their plan: {error}")))
}

/// Returns the record format of the options; `None` for Parquet, which has no records.
fn record_format_from_options(options: &CopyOptions) -> Option<RecordFormat> {
    let delimited = DelimitedOptions {
        delimiter: options.delimiter,
        null: options.null.clone(),
        default: options.default.clone(),
        header: match options.header {
            CopyHeader::Absent => HeaderMode::Absent,
            CopyHeader::Present => HeaderMode::Skip,
            CopyHeader::Match => HeaderMode::Match,
        },
    };
    match options.format {
        CopyFormat::Text => Some(RecordFormat::Text(delimited)),
        CopyFormat::Csv => Some(RecordFormat::Csv { delimited, quote: options.quote, escape: options.escape }),
        CopyFormat::Binary => Some(RecordFormat::Binary),
        CopyFormat::Parquet => None,
    }
}

fn layout(plan: &CopyFromPlan, record_format: RecordFormat, dates: DateContext) -> SqlResult<InputLayout> {
    let options = &plan.options;
    if options.default.is_some() && plan.columns.iter().any(|column| column.default.is_some()) {
        return Err(SqlError::unsupported("COPY FROM with DEFAULT for a column that has one"));
    }
    let target = |column: &Column| TargetColumn {
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        force_null: options.force_null.contains(&column.name),
        force_not_null: options.force_not_null.contains(&column.name),
        default: None,
    };
    let columns: Vec<TargetColumn> = plan.columns.iter().map(target).collect();
    Ok(InputLayout {
        table: plan.table.name.clone(),
        schema: InputLayout::batch_schema(&columns),
        columns,
        record_format,
        dates,
        skips_bad_records: options.on_error == OnError::Ignore,
        chunk_bytes: CHUNK_BYTES,
    })
}

/// Returns PostgreSQL's notice about skipped rows, if there were any.
fn skipped_notice(skipped: u64) -> Option<SqlError> {
    let message = match skipped {
        0 => return None,
        1 => "1 row was skipped due to data type incompatibility".to_owned(),
        count => format!("{count} rows were skipped due to data type incompatibility"),
    };
    Some(SqlError::new(Condition::SuccessfulCompletion, message))
}
