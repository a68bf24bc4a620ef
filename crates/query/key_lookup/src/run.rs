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

use super::Patched;
use super::compiled::{Compiled, Rows};
use super::expression::{batch, repeated};
use super::patch::Applied;
use super::plain::StoredRows;
use super::source::{Asked, Read};
use super::steps::{Counts, Run};

/// Result of a run, with the key ranges that it read.
pub(super) struct Made {
    pub(super) rows: RecordBatch,
    pub(super) read: Vec<Asked>,
}

impl Compiled {
    /// Runs the chain; `None` if the plan has to be run instead.
    pub(super) async fn run(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<Made>> {
        let one = if self.is_apart { batch(&Arc::new(Schema::empty()), Vec::new(), 1)? } else { self.one_row(values)? };
        let Some(counts) = self.counts(&one)? else { return Ok(None) };
        let made = |rows: &RecordBatch, read| Ok(Some(Made { rows: self.visible(rows), read }));
        let none = Vec::new;
        match &self.source {
            Rows::Scanned | Rows::Given { .. } => Ok(None),
            Rows::One => made(&self.take_steps(one.clone(), &one, counts)?, none()),
            Rows::Written(written) => {
                made(&self.take_steps(written.batch(values, &one, self.carried)?, &one, counts)?, none())
            }
            Rows::Unnested(unnested) => {
                let Some(rows) = unnested.batch(&one, self.carried)? else { return Ok(None) };
                made(&self.take_steps(rows, &one, counts)?, none())
            }
            Rows::Joined(joined) => {
                let Some((rows, read)) = joined.read(view, &one)? else { return Ok(None) };
                made(&self.take_steps(rows, &one, counts)?, read)
            }
            Rows::Keyed(keyed) => {
                let Some(range) = keyed.range(&one)? else {
                    return made(&self.take_steps(keyed.none(&one)?, &one, counts)?, none());
                };
                let mut limit = self.wanted(counts);
                loop {
                    let Some(read) = keyed.read(lookup, view, &range, limit).await? else { return Ok(None) };
                    let rows = self.take_steps(keyed.batch_of(&read, view, &one)?, &one, counts)?;
                    match limit.filter(|_| !self.is_extreme() && !read.is_all && Some(rows.num_rows()) != counts.fetch)
                    {
                        // The filters left too few rows.
                        Some(tried) => limit = Some(tried * 4),
                        None => return made(&rows, vec![keyed.asked(range, read.found)]),
                    }
                }
            }
        }
    }

    /// Returns the rows as stored or computed row by row, with the key range that was read; `None` if arrays are needed
    /// or the plan has to be run.
    pub(super) async fn run_plain(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(StoredRows, Option<Asked>)>> {
        let Rows::Keyed(keyed) = &self.source else { return Ok(None) };
        if self.plain.is_none() && self.row_by_row.is_none() {
            return Ok(None);
        }
        let one = self.one_row(values)?;
        let Some(counts) = self.counts(&one)? else { return Ok(None) };
        let Some(range) = keyed.range(&one)? else {
            return Ok(self.given(Vec::new(), counts, values)?.map(|rows| (rows, None)));
        };
        let Some(read) = keyed.read(lookup, view, &range, self.wanted(counts)).await? else { return Ok(None) };
        let Some(rows) = self.given(read.tuples, counts, values)? else { return Ok(None) };
        Ok(Some((rows, Some(keyed.asked(range, read.found)))))
    }

    /// Applies OFFSET and LIMIT and then the column choice or the row-by-row projections; `None` if arrays are needed.
    pub(super) fn given(
        &self,
        found: Vec<Tuple>,
        counts: Counts,
        values: &[ScalarValue],
    ) -> SqlResult<Option<StoredRows>> {
        let mut rows = found;
        rows.drain(..counts.skip.min(rows.len()));
        rows.truncate(counts.fetch.unwrap_or(usize::MAX));
        match &self.plain {
            Some(columns) => Ok(Some(StoredRows { rows, columns: Arc::clone(columns) })),
            None => self.computed_rows(&rows, values),
        }
    }

    /// Returns the rows to lock with the columns to return; `None` if the query does more than choose stored columns,
    /// or the plan has to be run.
    pub(super) async fn run_locking(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(Read, Arc<[StoredColumn]>, Asked)>> {
        let (Some(columns), Rows::Keyed(keyed)) = (&self.locked, &self.source) else { return Ok(None) };
        if self.steps.iter().any(|step| matches!(step, Run::Cut { .. })) {
            return Ok(None);
        }
        let range = match keyed.constants_at_once(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.one_row(values)?)?,
        };
        // No row can match: the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(lookup, view, &range, None).await? else { return Ok(None) };
        let asked = keyed.asked(range, read.found.clone());
        Ok(Some((read, Arc::clone(columns), asked)))
    }

    /// Computes the new row versions of an UPDATE, with the key range that was read; `None` if the UPDATE cannot be
    /// applied to stored rows, or the plan has to be run.
    pub(super) async fn run_patch(
        &self,
        lookup: &KeyLookup,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(Patched, Asked)>> {
        let (Some(patch), Rows::Keyed(keyed)) = (&self.patch, &self.source) else { return Ok(None) };
        let columns = Arc::clone(&patch.columns);
        let range = match keyed.constants_at_once(values) {
            Some(constants) => keyed.access.range(|at| Ok(constants[at]))?,
            None => keyed.range(&self.one_row(values)?)?,
        };
        // No row can match: the plan is as fast.
        let Some(range) = range else { return Ok(None) };
        let Some(read) = keyed.read(lookup, view, &range, None).await? else { return Ok(None) };
        let applied = patch.apply(&read.tuples, values, || self.one_row(values))?;
        let Some(Applied { rows, returning }) = applied else { return Ok(None) };
        let found = read.found.clone();
        Ok(Some((Patched { found, rows, columns, returning }, keyed.asked(range, read.found))))
    }

    /// Returns the parameters as a batch of one row.
    pub(super) fn one_row(&self, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let parameters = values.iter().map(|value| value.to_array().map_err(from_datafusion));
        batch(&self.schema, parameters.collect::<SqlResult<_>>()?, 1)
    }

    /// Applies the steps to rows that the caller passes.
    pub(super) fn run_over(&self, given: &RecordBatch, values: &[ScalarValue]) -> SqlResult<RecordBatch> {
        let one = self.one_row(values)?;
        let Rows::Given { schema } = &self.source else {
            return Err(SqlError::internal("key lookup: rows were passed to a chain with a source of its own"));
        };
        let fields = schema.fields().iter().chain(one.schema_ref().fields()).cloned();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let columns = given.columns().iter().cloned().chain(repeated(&one, given.num_rows())?).collect();
        let rows = batch(&schema, columns, given.num_rows())?;
        self.take_steps(rows, &one, Counts::default()).map(|made| self.visible(&made))
    }

    /// Removes the parameter columns.
    pub(super) fn visible(&self, rows: &RecordBatch) -> RecordBatch {
        let visible: Vec<usize> = (0..rows.num_columns() - self.carried).collect();
        rows.project(&visible).expect("the columns before the parameters exist")
    }
}
