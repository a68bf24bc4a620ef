//! SELECT … FOR UPDATE and its like: rows are locked in the order of the result, until LIMIT has enough of them.

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::Int64Type;
use catalog::RowPlace;
use planner::{QueryPlan, RowLocks};
use txn::Transaction;
use txn::locks::{LockWait, RowLock};
use types::{RowId, SqlError, SqlResult};

use super::targets::{columns_from, place_of, were_changed};
use super::{Attempt, Waits};
use crate::point::PointRun;
use crate::{Execution, RunContext};

impl Execution {
    /// Runs the query, locks the rows it asks for and gives the visible columns of those that it got.
    ///
    /// # Errors
    /// What the query finds; `55P03`, `40P01`, `40001`; `57014` when cancelled.
    pub async fn query_locked(
        &self,
        plan: &QueryPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Vec<RecordBatch>>> {
        let rows = self.collect(plan, context).await?;
        lock_rows(plan, rows, transaction, &Waits::of(context)).await
    }

    /// As [`Execution::query_locked`], of rows that the program of a plan gives for these parameters; `None` where the plan has to be run.
    ///
    /// # Errors
    /// As [`Execution::query_locked`].
    pub async fn query_locked_by_key(
        &self,
        plan: &QueryPlan,
        run: &PointRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<Attempt<Vec<RecordBatch>>>> {
        let Some(rows) = self.batches_by_key(run, transaction).await? else { return Ok(None) };
        lock_rows(plan, rows, transaction, &Waits::of(context)).await.map(Some)
    }
}

/// Locks the rows of `batches` that the query asks for and gives the visible columns of those that it got.
async fn lock_rows(
    plan: &QueryPlan,
    batches: Vec<RecordBatch>,
    transaction: &Transaction,
    waits: &Waits,
) -> SqlResult<Attempt<Vec<RecordBatch>>> {
    let (mut skip, limit) = plan.locked_limit.counts()?;
    let mut left = limit.unwrap_or(u64::MAX);
    let mut given = Vec::new();
    for batch in batches {
        if left == 0 {
            break;
        }
        let mut wanted = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let mut is_wanted = 0 < left;
            for locks in plan.locks.iter().filter(|_| is_wanted) {
                match lock(locks, &batch, row, transaction, waits).await? {
                    Outcome::Locked => {}
                    Outcome::Skipped => {
                        is_wanted = false;
                        break;
                    }
                    Outcome::Changed => return Ok(Attempt::Again),
                }
            }
            if is_wanted && 0 < skip {
                skip -= 1;
                is_wanted = false;
            } else if is_wanted {
                left -= 1;
            }
            wanted.push(is_wanted);
        }
        let visible = columns_from(&batch, 0, plan.columns.len())?;
        let visible = filter_record_batch(&visible, &BooleanArray::from(wanted));
        given.push(visible.map_err(|error| SqlError::internal(format!("locked rows: {error}")))?);
    }
    Ok(Attempt::Done(given))
}

enum Outcome {
    Locked,
    /// SKIP LOCKED, and another transaction has it.
    Skipped,
    /// It was changed before it was locked.
    Changed,
}

async fn lock(
    locks: &RowLocks,
    batch: &RecordBatch,
    row: usize,
    transaction: &Transaction,
    waits: &Waits,
) -> SqlResult<Outcome> {
    let ids = batch.column(locks.column).as_primitive::<Int64Type>();
    if ids.is_null(row) {
        // An outer join has no row of the table here.
        return Ok(Outcome::Locked);
    }
    let id = RowId(ids.value(row).cast_unsigned());
    let view = transaction.view();
    let places = batch.column(locks.column + 1).as_primitive::<Int64Type>();
    let place: RowPlace = place_of(places.value(row), view.state.rows(locks.table.oid))?;
    let wait = match locks.wait {
        types::LockWait::Block => waits.wait(),
        types::LockWait::NoWait => LockWait::NoWait,
        types::LockWait::SkipLocked => LockWait::SkipLocked,
    };
    let mode = match locks.mode {
        types::LockMode::KeyShare => RowLock::KeyShare,
        types::LockMode::Share => RowLock::Share,
        types::LockMode::NoKeyUpdate => RowLock::NoKeyUpdate,
        types::LockMode::Update => RowLock::Update,
    };
    let locked = waits.interruptibly(transaction.lock_rows(locks.table.oid, &[id], mode, wait)).await;
    let locked = locked.map_err(|error| named(error, &locks.table.name))?;
    if !locked.skipped.is_empty() {
        return Ok(Outcome::Skipped);
    }
    let changed = were_changed([(id, place)], locks.table.oid, transaction)?;
    Ok(if changed { Outcome::Changed } else { Outcome::Locked })
}

/// With the table's name, as PostgreSQL tells it.
fn named(mut error: SqlError, table: &str) -> SqlError {
    if error.message == "could not obtain lock on row in relation" {
        error.message = format!("could not obtain lock on row in relation \"{table}\"");
    }
    error
}
