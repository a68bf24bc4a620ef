//! Runs of a compiled chain: reads the rows of its source and applies the steps.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use catalog::CatalogState;
use datafusion::common::ScalarValue;
use functions::error::from_datafusion;
use rowstore::{StoredColumn, Tuple};
use scan::KeyLookup;
use types::{SqlError, SqlResult};

use super::UpdatedRows;
use super::compiled_chain::{CompiledChain, RowSource};
use super::compiled_steps::{CompiledStep, LimitOffset};
use super::index_range::{KeyRangeRead, RangeRows};
use super::row_update::UpdateResult;
use super::stored_columns::StoredRows;
use super::vectorized_expression::{new_batch, repeat_parameters};

/// Result of a run, with the key ranges that it read.
pub(super) struct RunResult {
    pub(super) rows: RecordBatch,
    pub(super) key_ranges: Vec<KeyRangeRead>,
}

impl CompiledChain {
    /// Runs the chain; `None` if the plan has to be run instead.
    pub(super) async fn run(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<RunResult>> {
        let one = if self.ignores_parameter_row {
            new_batch(&Arc::new(Schema::empty()), Vec::new(), 1)?
        } else {
            self.parameter_row(values)?
        };
        let Some(counts) = self.evaluate_limit(&one)? else { return Ok(None) };
        let made =
            |rows: &RecordBatch, read| Ok(Some(RunResult { rows: self.without_parameters(rows), key_ranges: read }));
        let none = Vec::new;
        match &self.source {
            RowSource::NoIndex | RowSource::CallerRows { .. } => Ok(None),
            RowSource::SingleRow => made(&self.apply_steps(one.clone(), &one, counts)?, none()),
            RowSource::Values(written) => {
                made(&self.apply_steps(written.evaluate(values, &one, self.parameter_columns)?, &one, counts)?, none())
            }
            RowSource::Unnest(unnested) => {
                let Some(rows) = unnested.evaluate(&one, self.parameter_columns)? else { return Ok(None) };
                made(&self.apply_steps(rows, &one, counts)?, none())
            }
            RowSource::IndexJoin(joined) => {
                let Some((rows, read)) = joined.read(view, &one)? else { return Ok(None) };
                made(&self.apply_steps(rows, &one, counts)?, read)
            }
            RowSource::IndexRange(keyed) => {
                let Some(range) = keyed.range(&one)? else {
                    return made(&self.apply_steps(keyed.empty_batch(&one)?, &one, counts)?, none());
                };
                let mut limit = self.source_row_limit(counts);
                loop {
                    let Some(read) = keyed.read(lookup, view, &range, limit).await? else { return Ok(None) };
                    let rows = self.apply_steps(keyed.to_batch(&read, view, &one)?, &one, counts)?;
                    match limit.filter(|_| {
                        !self.needs_first_row_only() && !read.is_complete && Some(rows.num_rows()) != counts.fetch
                    }) {
                        // The filters left too few rows.
                        Some(tried) => limit = Some(tried * 4),
                        None => return made(&rows, vec![keyed.key_range_read(range, read.found)]),
                    }
                }
            }
        }
    }

    /// Returns the rows as stored or computed row by row, with the key range that was read; `None` if arrays are needed
    /// or the plan has to be run.
    pub(super) async fn run_on_stored_rows(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(StoredRows, Option<KeyRangeRead>)>> {
        let RowSource::IndexRange(keyed) = &self.source else { return Ok(None) };
        if self.stored_columns.is_none() && self.projection.is_none() {
            return Ok(None);
        }
        let one = self.parameter_row(values)?;
        let Some(counts) = self.evaluate_limit(&one)? else { return Ok(None) };
        let Some(range) = keyed.range(&one)? else {
            return Ok(self.limit_and_project(Vec::new(), counts, values)?.map(|rows| (rows, None)));
        };
        let Some(read) = keyed.read(lookup, view, &range, self.source_row_limit(counts)).await? else {
            return Ok(None);
        };
        let Some(rows) = self.limit_and_project(read.tuples, counts, values)? else { return Ok(None) };
        Ok(Some((rows, Some(keyed.key_range_read(range, read.found)))))
    }

    /// Applies OFFSET and LIMIT and then the column choice or the row-by-row projections; `None` if arrays are needed.
    pub(super) fn limit_and_project(
        &self,
        rows_read: Vec<Tuple>,
        counts: LimitOffset,
        values: &[ScalarValue],
    ) -> SqlResult<Option<StoredRows>> {
        let mut rows = rows_read;
        rows.drain(..counts.skip.min(rows.len()));
        rows.truncate(counts.fetch.unwrap_or(usize::MAX));
        match &self.stored_columns {
            Some(columns) => Ok(Some(StoredRows { rows, columns: Arc::clone(columns) })),
            None => self.project_rows(&rows, values),
        }
    }

    /// Returns the rows to lock with the columns to return; `None` if the query does more than choose stored columns,
    /// or the plan has to be run.
    pub(super) async fn run_locking(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(RangeRows, Arc<[StoredColumn]>, KeyRangeRead)>> {
        let (Some(columns), RowSource::IndexRange(keyed)) = (&self.locked_columns, &self.source) else {
            return Ok(None);
        };
        if self.steps.iter().any(|step| matches!(step, CompiledStep::Limit { .. })) {
            return Ok(None);
        }
        let range = match keyed.constant_values(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.parameter_row(values)?)?,
        };
        // No row can match: the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(lookup, view, &range, None).await? else { return Ok(None) };
        let asked = keyed.key_range_read(range, read.found.clone());
        Ok(Some((read, Arc::clone(columns), asked)))
    }

    /// Computes the new row versions of an UPDATE, with the key range that was read; `None` if the UPDATE cannot be
    /// applied to stored rows, or the plan has to be run.
    pub(super) async fn run_update(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(UpdatedRows, KeyRangeRead)>> {
        let (Some(patch), RowSource::IndexRange(keyed)) = (&self.update, &self.source) else { return Ok(None) };
        let columns = Arc::clone(&patch.columns);
        let range = match keyed.constant_values(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.parameter_row(values)?)?,
        };
        // No row can match: the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(lookup, view, &range, None).await? else { return Ok(None) };
        let applied = patch.apply(&read.tuples, values, || self.parameter_row(values))?;
        let Some(UpdateResult { rows, returning }) = applied else { return Ok(None) };
        let found = read.found.clone();
        Ok(Some((UpdatedRows { locations: found, rows, columns, returning }, keyed.key_range_read(range, read.found))))
    }

    /// Returns the parameters as a batch of one row.
    pub(super) fn parameter_row(&self, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let parameters = values.iter().map(|value| value.to_array().map_err(from_datafusion));
        new_batch(&self.parameter_schema, parameters.collect::<SqlResult<_>>()?, 1)
    }

    /// Applies the steps to rows that the caller passes.
    pub(super) fn run_on_batch(&self, input_rows: &RecordBatch, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let one = self.parameter_row(values)?;
        let RowSource::CallerRows { schema } = &self.source else {
            return Err(SqlError::internal(
                "key lookup: a statement that reads its own rows was given rows by its caller",
            ));
        };
        let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns =
            input_rows.columns().iter().cloned().chain(repeat_parameters(&one, input_rows.num_rows())?).collect();
        let rows = new_batch(&schema, columns, input_rows.num_rows())?;
        self.apply_steps(rows, &one, LimitOffset::default()).map(|made| self.without_parameters(&made))
    }

    /// Removes the parameter columns.
    pub(super) fn without_parameters(&self, rows: &RecordBatch) -> RecordBatch {
        let visible: Vec<usize> = (0..rows.num_columns() - self.parameter_columns).collect();
        rows.project(&visible).expect("the columns before the parameters exist")
    }
}
