//! Runs that never wait: rows are found by parameters without evaluating expressions, among unflushed rows only.

use catalog::CatalogState;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use rowstore::{Tuple, Value};
use scan::{LocatedRow, unflushed_in_key_order};
use txn::Transaction;
use types::{SqlError, SqlResult};

use super::compiled_chain::{CompiledChain, RowSource};
use super::compiled_steps::{CompiledStep, LimitOffset};
use super::index_join::IndexJoinSource;
use super::index_range::{IndexRangeSource, KeyRangeRead, RangeRows};
use super::run_lookup::RunResult;
use super::vectorized_expression::Expression;
use super::{KeyLookupRows, KeyLookupRun, PreparedRun, value_expression};

/// Maximum number of rows and of bytes that such a run returns: they are buffered before any is sent.
const ROWS_MAX: usize = 1024;
const BYTES_MAX: usize = 256 << 10;

impl KeyLookupRun<'_> {
    /// Returns the rows of the plan, like [`KeyLookupRun::read_rows`], without waiting; `None` if a shard may hold
    /// matching rows, or the result is too large.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn try_read_nonblocking(&self, transaction: &mut Transaction) -> SqlResult<Option<KeyLookupRows>> {
        let PreparedRun { compiled, parameters: values } = self.lookup.chain.prepare(self.parameters, self.session)?;
        let view = transaction.view();
        if let RowSource::IndexJoin(joined) = &compiled.source {
            let Some(made) = compiled.try_run_join_nonblocking(joined, &values, &view.state)? else { return Ok(None) };
            for read in made.key_ranges {
                transaction.record_key_read(|| read.into_key_read());
            }
            return Ok(Some(KeyLookupRows::Batch(made.rows)));
        }
        let Some((rows, read)) = compiled.try_run_nonblocking(&values, &view.state)? else { return Ok(None) };
        if let Some(read) = read {
            transaction.record_key_read(|| read.into_key_read());
        }
        Ok(Some(rows))
    }
}

impl CompiledChain {
    fn try_run_nonblocking(
        &self,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(KeyLookupRows, Option<KeyRangeRead>)>> {
        let RowSource::IndexRange(keyed) = &self.source else { return Ok(None) };
        let Some(counts) = self.constant_limit(values) else { return Ok(None) };
        let Some(constants) = keyed.constant_values(values) else { return Ok(None) };
        // No row can match: the general path is short.
        let Some(range) = keyed.access.range(|at| Ok(constants[at]))? else { return Ok(None) };
        let fresh = view.rows(keyed.table.oid);
        let first = keyed.access.columns[0];
        if range.overlapping_shards(&fresh.shards.shards, first).next().is_some() {
            return Ok(None);
        }
        let limit = self.source_row_limit(counts);
        let count_max = limit.unwrap_or(ROWS_MAX + 1).min(ROWS_MAX + 1);
        let found = unflushed_in_key_order(fresh, keyed.access.index, &range, keyed.backwards);
        let found: Vec<LocatedRow> = found.take(count_max).collect();
        if ROWS_MAX < found.len() {
            return Ok(None);
        }
        let is_complete = found.len() < count_max;
        let row = |found: &LocatedRow| {
            let row = fresh.fresh_row(found.row).ok_or_else(|| {
                SqlError::internal("key lookup: an index names a row that the snapshot does not have")
            })?;
            Ok(row.tuple.clone())
        };
        let tuples = found.iter().map(row).collect::<SqlResult<Vec<Tuple>>>()?;
        if BYTES_MAX < tuples.iter().map(|tuple| tuple.as_bytes().len()).sum() {
            return Ok(None);
        }
        if let Some(rows) = self.limit_and_project(tuples.clone(), counts, values)? {
            return Ok(Some((KeyLookupRows::Stored(rows), Some(keyed.key_range_read(range, found)))));
        }
        let (one, read) = (self.parameter_row(values)?, RangeRows { tuples, found, is_complete });
        let rows = self.apply_steps(keyed.to_batch(&read, view, &one)?, &one, counts)?;
        if limit.is_some() && !self.needs_first_row_only() && !is_complete && Some(rows.num_rows()) != counts.fetch {
            return Ok(None);
        }
        Ok(Some((KeyLookupRows::Batch(self.without_parameters(&rows)), Some(keyed.key_range_read(range, read.found)))))
    }

    fn try_run_join_nonblocking(
        &self,
        joined: &IndexJoinSource,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<RunResult>> {
        let Some(counts) = self.constant_limit(values) else { return Ok(None) };
        let one = self.parameter_row(values)?;
        let Some((rows, read)) = joined.read(view, &one)? else { return Ok(None) };
        let rows = self.without_parameters(&self.apply_steps(rows, &one, counts)?);
        let is_short = rows.num_rows() <= ROWS_MAX && rows.get_array_memory_size() <= BYTES_MAX;
        Ok(is_short.then_some(RunResult { rows, key_ranges: read }))
    }

    /// Returns OFFSET and LIMIT; `None` if they have to be computed, or are invalid.
    fn constant_limit(&self, values: &[ScalarValue]) -> Option<LimitOffset> {
        let count = |count: &Option<Expression>| match count.as_ref().map(|count| constant_value(count, values)) {
            None => Some(None),
            Some(Some(Value::Int(count))) => usize::try_from(count).ok().map(Some),
            Some(_) => None,
        };
        let mut counts = LimitOffset::default();
        for step in &self.steps {
            if let CompiledStep::Limit { skip, fetch } = step {
                counts = LimitOffset { skip: count(skip)?.unwrap_or(0), fetch: count(fetch)? };
            }
        }
        Some(counts)
    }
}

impl IndexRangeSource {
    /// Returns the values that the conditions compare with; `None` if one has to be computed.
    pub(super) fn constant_values<'a>(&'a self, values: &'a [ScalarValue]) -> Option<Vec<Value<'a>>> {
        self.constants.iter().map(|constant| constant_value(constant, values)).collect()
    }
}

/// Returns the value of a parameter or a literal; `None` for all other expressions, and for types with another stored
/// form.
fn constant_value<'a>(expression: &'a Expression, values: &'a [ScalarValue]) -> Option<Value<'a>> {
    value_expression::scalar_to_value(match expression.downcast_ref::<Column>() {
        Some(parameter) => values.get(parameter.index())?,
        None => expression.downcast_ref::<Literal>()?.value(),
    })
}
