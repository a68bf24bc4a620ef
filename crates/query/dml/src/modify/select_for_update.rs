//! SELECT … FOR UPDATE and the weaker row locks: rows are locked in the order of the result, until LIMIT is reached.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use binder::{QueryPlan, RowLocks};
use catalog::RowPosition;
use executor::RunContext;
use futures::future::BoxFuture;
use key_lookup::{KeyLookupRows, KeyLookupRun};
use row_locks::{AttemptOutcome, LockWaits};
use scan::slice_columns;
use txn::Transaction;
use txn::locks::{LockWait, RowLock};
use types::{Condition, RowId, SqlError, SqlResult};

use super::statement_changes::{decode_place, were_changed};
use crate::dml::DmlExecutor;

impl DmlExecutor {
    /// Runs the query, locks its rows, and returns the visible columns of the locked ones.
    ///
    /// # Errors
    /// Errors of the query; `55P03`, `40P01`, `40001`; `57014` when cancelled.
    pub fn query_locked<'a>(
        &'a self,
        plan: &'a QueryPlan,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<AttemptOutcome<Vec<RecordBatch>>>> {
        Box::pin(self.query_locked_unboxed(plan, transaction, context))
    }

    async fn query_locked_unboxed(
        &self,
        plan: &QueryPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<Vec<RecordBatch>>> {
        let rows = self.executor.collect(plan, context).await?;
        lock_rows(plan, rows, transaction, &LockWaits::from_context(context)).await
    }

    /// Locks and returns rows that a compiled key-lookup plan finds for its parameters; `None` if the plan must be run
    /// by operators instead.
    ///
    /// # Errors
    /// As [`DmlExecutor::query_locked`].
    pub async fn query_locked_by_key(
        &self,
        plan: &QueryPlan,
        run: &KeyLookupRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<AttemptOutcome<Vec<KeyLookupRows>>>> {
        let waits = LockWaits::from_context(context);
        if let Some((found, mut rows)) = run.read_rows_to_lock(&self.lookup, transaction).await?
            && let [locks] = plan.locks.as_slice()
        {
            let mut wanted = LimitProgress::from_plan(plan)?;
            for found in found {
                let outcome = match wanted.is_limit_reached() {
                    true => RowLockOutcome::Skipped,
                    false => lock(locks, found.row, found.place, transaction, &waits).await?,
                };
                if !wanted.record(&outcome) {
                    return Ok(Some(AttemptOutcome::Conflict));
                }
            }
            rows.retain(&wanted.is_returned);
            return Ok(Some(AttemptOutcome::Done(vec![KeyLookupRows::Stored(rows)])));
        }
        let Some(rows) = run.read_batches(&self.lookup, transaction).await? else { return Ok(None) };
        Ok(Some(match lock_rows(plan, rows, transaction, &waits).await? {
            AttemptOutcome::Done(rows) => AttemptOutcome::Done(rows.into_iter().map(KeyLookupRows::Batch).collect()),
            AttemptOutcome::Conflict => AttemptOutcome::Conflict,
        }))
    }
}

/// Progress of OFFSET and LIMIT over rows that are being locked.
struct LimitProgress {
    /// Rows that OFFSET has still to skip.
    offset: u64,
    /// Rows that LIMIT still admits.
    limit: u64,
    /// For each row so far, whether it is part of the result.
    is_returned: Vec<bool>,
}

impl LimitProgress {
    fn from_plan(plan: &QueryPlan) -> SqlResult<Self> {
        let (skip, limit) = plan.locked_limit.counts()?;
        Ok(Self { offset: skip, limit: limit.unwrap_or(u64::MAX), is_returned: Vec::new() })
    }

    /// Returns whether LIMIT is reached, so that no further row is locked.
    fn is_limit_reached(&self) -> bool {
        self.limit == 0
    }

    /// Records the outcome of the next row; returns `false` if the query must run again.
    fn record(&mut self, outcome: &RowLockOutcome) -> bool {
        let is_had = match outcome {
            RowLockOutcome::Locked => true,
            RowLockOutcome::Skipped => false,
            RowLockOutcome::Changed => return false,
        };
        let is_given = is_had && self.offset == 0;
        self.offset -= u64::from(is_had && !is_given);
        self.limit -= u64::from(is_given);
        self.is_returned.push(is_given);
        true
    }
}

/// Locks the rows of `batches` and returns the visible columns of the locked ones.
async fn lock_rows(
    plan: &QueryPlan,
    batches: Vec<RecordBatch>,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<AttemptOutcome<Vec<RecordBatch>>> {
    let mut wanted = LimitProgress::from_plan(plan)?;
    let mut given = Vec::new();
    for batch in batches {
        if wanted.is_limit_reached() {
            break;
        }
        wanted.is_returned.clear();
        for row in 0..batch.num_rows() {
            let mut outcome = if wanted.is_limit_reached() { RowLockOutcome::Skipped } else { RowLockOutcome::Locked };
            for locks in &plan.locks {
                if !matches!(outcome, RowLockOutcome::Locked) {
                    break;
                }
                outcome = lock_row(locks, &batch, row, transaction, waits).await?;
            }
            if !wanted.record(&outcome) {
                return Ok(AttemptOutcome::Conflict);
            }
        }
        let visible = slice_columns(&batch, 0, plan.columns.len())?;
        let visible = filter_record_batch(&visible, &BooleanArray::from(wanted.is_returned.clone()));
        given.push(visible.map_err(|error| {
            SqlError::internal(format!("could not filter the rows locked by SELECT FOR UPDATE: {error}"))
        })?);
    }
    Ok(AttemptOutcome::Done(given))
}

/// Outcome of locking one row.
enum RowLockOutcome {
    /// The row is locked and unchanged.
    Locked,
    /// Another transaction holds a lock, and the query says SKIP LOCKED.
    Skipped,
    /// Another transaction changed the row before it was locked.
    Changed,
}

/// Locks the row that `locks` refers to in row `row` of a batch.
async fn lock_row(
    locks: &RowLocks,
    batch: &RecordBatch,
    row: usize,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<RowLockOutcome> {
    let ids = batch.column(locks.column).as_primitive::<Int64Type>();
    if ids.is_null(row) {
        // The null-extended side of an outer join has no row to lock.
        return Ok(RowLockOutcome::Locked);
    }
    let id = RowId(ids.value(row).cast_unsigned());
    let view = transaction.view();
    let places = batch.column(locks.column + 1).as_primitive::<Int64Type>();
    let place = decode_place(places.value(row), view.state.rows(locks.table.oid))?;
    lock(locks, id, place, transaction, waits).await
}

async fn lock(
    locks: &RowLocks,
    id: RowId,
    place: RowPosition,
    transaction: &Transaction,
    waits: &LockWaits,
) -> SqlResult<RowLockOutcome> {
    let wait = match locks.wait {
        types::LockWait::Block => waits.lock_wait(),
        types::LockWait::NoWait => LockWait::NoWait,
        types::LockWait::SkipLocked => LockWait::SkipLocked,
    };
    let mode = match locks.mode {
        types::LockMode::KeyShare => RowLock::KeyShare,
        types::LockMode::Share => RowLock::Share,
        types::LockMode::NoKeyUpdate => RowLock::NoKeyUpdate,
        types::LockMode::Update => RowLock::Update,
    };
    let locked = waits.wait_for(transaction.lock_rows(locks.table.oid, &[id], mode, wait)).await;
    let locked = locked.map_err(|error| match locks.wait {
        types::LockWait::NoWait => with_table_name(error, &locks.table.name),
        types::LockWait::Block | types::LockWait::SkipLocked => error,
    })?;
    if !locked.skipped.is_empty() {
        return Ok(RowLockOutcome::Skipped);
    }
    let changed = were_changed([(id, place)], locks.table.oid, transaction)?;
    Ok(if changed { RowLockOutcome::Changed } else { RowLockOutcome::Locked })
}

/// Adds the table's name to the error of a row lock with NOWAIT, as PostgreSQL does.
fn with_table_name(mut error: SqlError, table: &str) -> SqlError {
    if error.condition == Condition::LockNotAvailable {
        error.message = format!("could not obtain lock on row in relation \"{table}\"");
    }
    error
}
