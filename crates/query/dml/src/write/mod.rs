//! INSERT: rows are collected where constraints, ON CONFLICT or RETURNING need it, and streamed to shards otherwise.
//!
//! - `gathered.rs`: inserts rows that were collected, with ON CONFLICT.
//! - `dealt.rs`: deals the rows of one stream to several writers.
//! - `with_ids.rs`: writes changed rows, which have ids already, to shards.

mod dealt;
mod gathered;
mod with_ids;

use binder::{Step, WritePlan};
use catalog::Storage;
use executor::RunContext;
use futures::future::BoxFuture;
use key_lookup::PointRun;
use row_locks::{Attempt, lock_for_rows};
use storage_error::from_txn;
use tracing::Instrument;
use txn::Transaction;
use types::SqlResult;

use crate::dml::Dml;
use crate::modify::Modified;

use dealt::dealt;
use gathered::Gathered;

impl Dml {
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
    ) -> BoxFuture<'a, SqlResult<Attempt<Modified>>> {
        Box::pin(self.write_unboxed(plan, transaction, context))
    }

    async fn write_unboxed(
        &self,
        plan: &WritePlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        if plan.before.is_empty() && lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Attempt::Again);
        }
        transaction.stage(plan.before.clone()).map_err(from_txn)?;
        let Some(input) = plan.input.clone() else { return Ok(Attempt::Done(Modified::none())) };
        if gathered::is_gathered(plan) {
            let rows = self.executor.collect(&input, context).await?;
            let rows = Gathered::of_batches(&plan.table, rows)?;
            return self.write_gathered(plan, rows, None, transaction, context).await;
        }
        let prepared = self.executor.prepared_to_be_noted(&input, context).await?;
        let load = self.loader.load(&plan.table, transaction, fresh_rows_max(plan.table.storage, context));
        let loading = async move {
            let rows = dealt(prepared.operators, prepared.task.session_config().target_partitions())?;
            load.run(rows, prepared.task).await
        };
        // After a failure the uploads stay announced, and are removed like all that are not committed.
        let loaded = self.executor.run(context, loading.instrument(Step::Run.span())).await?;
        let rows = loaded.stage(transaction)?;
        Ok(Attempt::Done(Modified { rows, returning: Vec::new() }))
    }
}

impl Dml {
    /// Inserts rows that a compiled key-lookup plan computes for its parameters; `None` if the plan must be run by
    /// operators instead.
    ///
    /// # Errors
    /// As [`Dml::write`].
    pub async fn write_by_key(
        &self,
        plan: &WritePlan,
        run: &PointRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<Attempt<Modified>>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Some(Attempt::Again));
        }
        if plan.returning.is_none()
            && let Some(rows) = run.written(&plan.table)?
            && rows.len() <= fresh_rows_max(plan.table.storage, context)
        {
            let rows = Gathered::of_rows(rows);
            return self.write_gathered(plan, rows, Some(run), transaction, context).await.map(Some);
        }
        let Some(rows) = run.batches(&self.lookup, transaction).await? else { return Ok(None) };
        let rows = Gathered::of_batches(&plan.table, rows)?;
        self.write_gathered(plan, rows, Some(run), transaction, context).await.map(Some)
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
