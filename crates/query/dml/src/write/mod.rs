//! INSERT: rows are collected where constraints, ON CONFLICT or RETURNING need it, and streamed to shards otherwise.
//!
//! - `collected_rows.rs`: inserts rows that were collected, with ON CONFLICT.
//! - `round_robin.rs`: deals the rows of one stream to several writers.
//! - `changed_rows.rs`: writes changed rows, which have ids already, to shards.

mod changed_rows;
mod collected_rows;
mod round_robin;

use binder::{Step, WritePlan};
use catalog::Storage;
use executor::RunContext;
use futures::future::BoxFuture;
use key_lookup::KeyLookupRun;
use row_locks::{AttemptOutcome, lock_for_rows};
use storage_error::from_txn;
use tracing::Instrument;
use txn::Transaction;
use types::SqlResult;

use crate::dml::DmlExecutor;
use crate::modify::ModifyOutcome;

use collected_rows::CollectedRows;
use round_robin::repartition_round_robin;

impl DmlExecutor {
    /// Runs an INSERT and stages its rows.
    ///
    /// # Errors
    /// Violated constraints (`23502`, `23514`, …), errors of the query, `57014` when cancelled. The transaction must
    /// then be rolled back to its state before the statement.
    pub fn write<'a>(
        &'a self,
        plan: &'a WritePlan,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<AttemptOutcome<ModifyOutcome>>> {
        Box::pin(self.write_unboxed(plan, transaction, context))
    }

    async fn write_unboxed(
        &self,
        plan: &WritePlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<ModifyOutcome>> {
        if plan.changes_before.is_empty() && lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(AttemptOutcome::Conflict);
        }
        transaction.stage(plan.changes_before.clone()).map_err(from_txn)?;
        let Some(input) = plan.input.clone() else { return Ok(AttemptOutcome::Done(ModifyOutcome::empty())) };
        if collected_rows::must_collect_rows(plan) {
            let rows = self.executor.collect(&input, context).await?;
            let rows = CollectedRows::from_batches(&plan.table, rows)?;
            return self.write_collected(plan, rows, None, transaction, context).await;
        }
        let prepared = self.executor.prepare_and_record(&input, context).await?;
        let load = self.loader.new_load(&plan.table, transaction, fresh_rows_max(plan.table.storage, context));
        let loading = async move {
            let rows = repartition_round_robin(prepared.operators, prepared.task.session_config().target_partitions())?;
            load.run(rows, prepared.task).await
        };
        // After a failure the uploads stay announced, and are removed like all that are not committed.
        let loaded = self.executor.run_task(context, loading.instrument(Step::Run.span())).await?;
        let rows = loaded.stage(transaction)?;
        Ok(AttemptOutcome::Done(ModifyOutcome { rows, returning: Vec::new() }))
    }
}

impl DmlExecutor {
    /// Inserts rows that a compiled key-lookup plan computes for its parameters; `None` if the plan must be run by
    /// operators instead.
    ///
    /// # Errors
    /// As [`DmlExecutor::write`].
    pub async fn write_by_key(
        &self,
        plan: &WritePlan,
        run: &KeyLookupRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<AttemptOutcome<ModifyOutcome>>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Some(AttemptOutcome::Conflict));
        }
        if plan.returning.is_none()
            && let Some(rows) = run.compute_inserted_rows(&plan.table)?
            && rows.len() <= fresh_rows_max(plan.table.storage, context)
        {
            let rows = CollectedRows::from_tuples(rows);
            return self.write_collected(plan, rows, Some(run), transaction, context).await.map(Some);
        }
        let Some(rows) = run.read_batches(&self.lookup, transaction).await? else { return Ok(None) };
        let rows = CollectedRows::from_batches(&plan.table, rows)?;
        self.write_collected(plan, rows, Some(run), transaction, context).await.map(Some)
    }
}

/// Returns the number of rows up to which a statement inserts fresh rows; more are written to shards directly.
fn fresh_rows_max(storage: Storage, context: &RunContext) -> usize {
    match storage {
        Storage::Row => usize::MAX,
        Storage::Column => 0,
        Storage::Hybrid => context.settings.direct_load_rows(),
    }
}
