//! Rows that are found without waiting: by parameters as they came, among fresh rows.

use std::sync::Arc;

use catalog::CatalogState;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::expressions::{Column, Literal};
use rowstore::Value;
use txn::Transaction;
use types::{SqlError, SqlResult};

use super::compiled::{Compiled, Counts, Expression, Rows, Run};
use super::source::{Asked, KeyedRows};
use super::{PointRun, StoredRows};
use crate::Execution;
use crate::lookup::{Found, fresh_in_order};

/// Rows that are given so at most: they are buffered before any is sent.
const ROWS_MAX: usize = 1024;

impl Execution {
    /// As [`Execution::rows_by_key`], where the rows are given as they are stored and none of a shard is meant; else `None`.
    ///
    /// # Errors
    /// What the plan would find.
    pub fn rows_at_once(&self, run: &PointRun<'_>, transaction: &mut Transaction) -> SqlResult<Option<StoredRows>> {
        let compiled = run.program.rows.compiled(run.values, run.session)?;
        let view = transaction.view();
        let Some((rows, read)) = compiled.run_at_once(run.values, &view.state)? else { return Ok(None) };
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
    ) -> SqlResult<Option<(StoredRows, Option<Asked>)>> {
        let (Some(columns), Rows::Keyed(keyed)) = (&self.plain, &self.source) else { return Ok(None) };
        let Some(counts) = self.counts_at_once(values) else { return Ok(None) };
        let columns = Arc::clone(columns);
        let Some(constants) = keyed.constants_at_once(values) else { return Ok(None) };
        let Some(range) = keyed.access.range(|at| Ok(constants[at]))? else {
            return Ok(Some((StoredRows { rows: Vec::new(), columns }, None)));
        };
        let fresh = view.rows(keyed.table.oid);
        let first = keyed.access.columns[0];
        if fresh.shards.shards.iter().any(|shard| range.may_be_in(shard, first)) {
            return Ok(None);
        }
        let count_max = self.wanted(counts).unwrap_or(ROWS_MAX + 1).min(ROWS_MAX + 1);
        let found = fresh_in_order(fresh, keyed.access.index, &range, keyed.backwards);
        let found: Vec<Found> = found.take(count_max).collect();
        if ROWS_MAX < found.len() {
            return Ok(None);
        }
        let given = found.iter().skip(counts.skip).take(counts.fetch.unwrap_or(usize::MAX));
        let row = |found: &Found| {
            let row = fresh.fresh_row(found.row).ok_or_else(|| SqlError::internal("a found row is not there"))?;
            Ok(row.tuple.clone())
        };
        let rows = given.map(row).collect::<SqlResult<Vec<_>>>()?;
        Ok(Some((StoredRows { rows, columns }, Some(keyed.asked(range, found)))))
    }

    /// OFFSET and LIMIT; `None` where they have to be computed, or are refused.
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
    /// What the conditions compare with; `None` where that has to be computed.
    fn constants_at_once<'a>(&'a self, values: &'a [ScalarValue]) -> Option<Vec<Value<'a>>> {
        self.constants.iter().map(|constant| value_of(constant, values)).collect()
    }
}

/// The value of a parameter or a constant; `None` for all other expressions, and for values that are not often keys.
fn value_of<'a>(expression: &'a Expression, values: &'a [ScalarValue]) -> Option<Value<'a>> {
    let scalar = match expression.downcast_ref::<Column>() {
        Some(parameter) => values.get(parameter.index())?,
        None => expression.downcast_ref::<Literal>()?.value(),
    };
    Some(match scalar {
        scalar if scalar.is_null() => Value::Null,
        ScalarValue::Boolean(Some(value)) => Value::Bool(*value),
        ScalarValue::Int16(Some(value)) => Value::Int(i64::from(*value)),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => Value::Int(i64::from(*value)),
        ScalarValue::Int64(Some(value)) | ScalarValue::TimestampMicrosecond(Some(value), _) => Value::Int(*value),
        ScalarValue::Decimal128(Some(value), _, _) => Value::Decimal(*value),
        ScalarValue::Utf8View(Some(text)) => Value::Text(text),
        ScalarValue::FixedSizeBinary(_, Some(bytes)) => Value::Bytes(bytes),
        _ => return None,
    })
}
