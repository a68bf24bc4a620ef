//! Runs that never wait: rows are found by parameters without evaluating expressions, among unflushed rows only.

use catalog::CatalogState;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use rowstore::{Tuple, Value};
use scan::{Found, fresh_in_order};
use txn::Transaction;
use types::{SqlError, SqlResult};

use super::compiled::{Compiled, Rows};
use super::expression::Expression;
use super::join::JoinedRows;
use super::run::Made;
use super::source::{Asked, KeyedRows, Read};
use super::steps::{Counts, Run};
use super::{PointRows, PointRun, Ready, cell};

/// Maximum number of rows and of bytes that such a run returns: they are buffered before any is sent.
const ROWS_MAX: usize = 1024;
const BYTES_MAX: usize = 256 << 10;

impl PointRun<'_> {
    /// Returns the rows of the plan, like [`PointRun::rows`], without waiting; `None` if a shard may hold matching
    /// rows, or the result is too large.
    ///
    /// # Errors
    /// Errors of the statement's expressions.
    pub fn rows_at_once(&self, transaction: &mut Transaction) -> SqlResult<Option<PointRows>> {
        let Ready { compiled, values } = self.program.rows.ready(self.values, self.session)?;
        let view = transaction.view();
        if let Rows::Joined(joined) = &compiled.source {
            let Some(made) = compiled.run_joined_at_once(joined, &values, &view.state)? else { return Ok(None) };
            for read in made.read {
                transaction.note_key_read(|| read.of_key());
            }
            return Ok(Some(PointRows::Batch(made.rows)));
        }
        let Some((rows, read)) = compiled.run_at_once(&values, &view.state)? else { return Ok(None) };
        if let Some(read) = read {
            transaction.note_key_read(|| read.of_key());
        }
        Ok(Some(rows))
    }
}

impl Compiled {
    fn run_at_once(
        &self,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<(PointRows, Option<Asked>)>> {
        let Rows::Keyed(keyed) = &self.source else { return Ok(None) };
        let Some(counts) = self.counts_at_once(values) else { return Ok(None) };
        let Some(constants) = keyed.constants_at_once(values) else { return Ok(None) };
        // No row can match: the general path is short.
        let Some(range) = keyed.access.range(|at| Ok(constants[at]))? else { return Ok(None) };
        let fresh = view.rows(keyed.table.oid);
        let first = keyed.access.columns[0];
        if range.shards(&fresh.shards.shards, first).next().is_some() {
            return Ok(None);
        }
        let limit = self.wanted(counts);
        let count_max = limit.unwrap_or(ROWS_MAX + 1).min(ROWS_MAX + 1);
        let found = fresh_in_order(fresh, keyed.access.index, &range, keyed.backwards);
        let found: Vec<Found> = found.take(count_max).collect();
        if ROWS_MAX < found.len() {
            return Ok(None);
        }
        let is_all = found.len() < count_max;
        let row = |found: &Found| {
            let row = fresh.fresh_row(found.row).ok_or_else(|| SqlError::internal("an indexed row is missing"))?;
            Ok(row.tuple.clone())
        };
        let tuples = found.iter().map(row).collect::<SqlResult<Vec<Tuple>>>()?;
        if BYTES_MAX < tuples.iter().map(|tuple| tuple.as_bytes().len()).sum() {
            return Ok(None);
        }
        if let Some(rows) = self.given(tuples.clone(), counts, values)? {
            return Ok(Some((PointRows::Stored(rows), Some(keyed.asked(range, found)))));
        }
        let (one, read) = (self.one_row(values)?, Read { tuples, found, is_all });
        let rows = self.take_steps(keyed.batch_of(&read, view, &one)?, &one, counts)?;
        if limit.is_some() && !self.is_extreme() && !is_all && Some(rows.num_rows()) != counts.fetch {
            return Ok(None);
        }
        Ok(Some((PointRows::Batch(self.visible(&rows)), Some(keyed.asked(range, read.found)))))
    }

    fn run_joined_at_once(
        &self,
        joined: &JoinedRows,
        values: &[ScalarValue],
        view: &CatalogState,
    ) -> SqlResult<Option<Made>> {
        let Some(counts) = self.counts_at_once(values) else { return Ok(None) };
        let one = self.one_row(values)?;
        let Some((rows, read)) = joined.read(view, &one)? else { return Ok(None) };
        let rows = self.visible(&self.take_steps(rows, &one, counts)?);
        let is_short = rows.num_rows() <= ROWS_MAX && rows.get_array_memory_size() <= BYTES_MAX;
        Ok(is_short.then_some(Made { rows, read }))
    }

    /// Returns OFFSET and LIMIT; `None` if they have to be computed, or are invalid.
    fn counts_at_once(&self, values: &[ScalarValue]) -> Option<Counts> {
        let count = |count: &Option<Expression>| match count.as_ref().map(|count| value_of(count, values)) {
            None => Some(None),
            Some(Some(Value::Int(count))) => usize::try_from(count).ok().map(Some),
            Some(_) => None,
        };
        let mut counts = Counts::default();
        for step in &self.steps {
            if let Run::Cut { skip, fetch } = step {
                counts = Counts { skip: count(skip)?.unwrap_or(0), fetch: count(fetch)? };
            }
        }
        Some(counts)
    }
}

impl KeyedRows {
    /// Returns the values that the conditions compare with; `None` if one has to be computed.
    pub(super) fn constants_at_once<'a>(&'a self, values: &'a [ScalarValue]) -> Option<Vec<Value<'a>>> {
        self.constants.iter().map(|constant| value_of(constant, values)).collect()
    }
}

/// Returns the value of a parameter or a literal; `None` for all other expressions, and for types with another stored
/// form.
fn value_of<'a>(expression: &'a Expression, values: &'a [ScalarValue]) -> Option<Value<'a>> {
    cell::value_of(match expression.downcast_ref::<Column>() {
        Some(parameter) => values.get(parameter.index())?,
        None => expression.downcast_ref::<Literal>()?.value(),
    })
}
