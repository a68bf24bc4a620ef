//! UPDATE, DELETE and MERGE: the plan computes the changes of rows, which are locked, verified, checked and staged.
//!
//! A statement's plan runs to its end before rows are locked. If another transaction has changed one of the rows
//! meanwhile, the statement runs again on a newer snapshot ([`AttemptOutcome::Conflict`]) and keeps its locks; so no
//! plan has to re-evaluate single rows, as PostgreSQL's EvalPlanQual does.
//!
//! - `statement_changes.rs`: the rows that a statement changes, read from the plan's output.
//! - `referential_actions.rs`: referential actions (ON DELETE, ON UPDATE).
//! - `select_for_update.rs`: SELECT … FOR UPDATE and the weaker locks.

use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::ModifyPlan;
use catalog::{Storage, Table};
use executor::RunContext;
use futures::future::BoxFuture;
use key_lookup::KeyLookupRun;
use row_locks::{AttemptOutcome, LockWaits, check_constraints, lock_for_rows};
use storage_error::from_txn;
use txn::Transaction;
use types::{ColumnId, SqlResult};

use crate::dml::DmlExecutor;

mod referential_actions;
mod select_for_update;
mod statement_changes;

pub(crate) use referential_actions::{ReferentialActions, is_seen};
pub use statement_changes::{ShardRows, StatementChanges, decode_place};

/// Outcome of a statement that changes rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ModifyOutcome {
    /// Number of rows that were inserted, updated or deleted.
    pub rows: u64,
    /// Rows of RETURNING; empty without one.
    pub returning: Vec<RecordBatch>,
}

impl ModifyOutcome {
    pub(crate) fn empty() -> Self {
        Self { rows: 0, returning: Vec::new() }
    }
}

impl DmlExecutor {
    /// Runs the plan and stages its changes.
    ///
    /// # Errors
    /// Errors of the plan and violated constraints; `40001` under REPEATABLE READ for rows that another transaction has
    /// changed; `40P01`, `55P03`; `57014` when cancelled. The transaction must then be rolled back to its state before
    /// the statement.
    pub fn modify<'a>(
        &'a self,
        plan: &'a ModifyPlan,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<AttemptOutcome<ModifyOutcome>>> {
        Box::pin(self.modify_unboxed(plan, transaction, context))
    }

    async fn modify_unboxed(
        &self,
        plan: &ModifyPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<ModifyOutcome>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(AttemptOutcome::Conflict);
        }
        let rows = self.executor.collect(&plan.input, context).await?;
        self.modify_rows(plan, rows, transaction, context).await
    }

    /// Changes rows that a compiled key-lookup plan finds for its parameters; `None` if the plan must be run by
    /// operators instead.
    ///
    /// # Errors
    /// As [`DmlExecutor::modify`].
    pub async fn modify_by_key(
        &self,
        plan: &ModifyPlan,
        run: &KeyLookupRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<AttemptOutcome<ModifyOutcome>>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Some(AttemptOutcome::Conflict));
        }
        if let Some(patched) = run.compute_updated_rows(&self.lookup, transaction).await?
            && patched.rows.len() <= changed_rows_max(plan.table.storage, context)
        {
            let targets = StatementChanges::from_patched(&plan.table, patched);
            return self.modify_targets(plan, targets, transaction, context).await.map(Some);
        }
        let Some(rows) = run.read_batches(&self.lookup, transaction).await? else { return Ok(None) };
        self.modify_rows(plan, rows, transaction, context).await.map(Some)
    }

    async fn modify_rows(
        &self,
        plan: &ModifyPlan,
        batches: Vec<RecordBatch>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<ModifyOutcome>> {
        let (fresh_rows_max, once) = (changed_rows_max(plan.table.storage, context), plan.command_tag == "MERGE");
        let targets = StatementChanges::from_batches_with_limit(
            fresh_rows_max,
            &plan.table,
            &plan.old_columns,
            once,
            batches,
            transaction,
        )?;
        self.modify_targets(plan, targets, transaction, context).await
    }

    async fn modify_targets(
        &self,
        plan: &ModifyPlan,
        targets: StatementChanges,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<ModifyOutcome>> {
        let waits = LockWaits::from_context(context);
        if self.lock_and_check(&plan.table, &plan.old_columns, &targets, transaction, &waits).await?
            == AttemptOutcome::Conflict
        {
            return Ok(AttemptOutcome::Conflict);
        }
        let rows = targets.count();
        let following = ReferentialActions::from_changes(&plan.table, &targets, transaction);
        let returning = plan.returning.as_ref().map(Vec::len);
        let returning = if targets.goes_to_shards {
            let many = targets.into_shard_rows(&plan.table, returning, transaction)?;
            self.write_shard_rows(&plan.table, many, transaction, context).await?
        } else {
            let (changes, returning) = targets.into_changes(returning, transaction)?;
            transaction.write_rows(plan.table.oid, changes).map_err(from_txn)?;
            returning
        };
        if following.run(self, &plan.references, transaction, context).await? == AttemptOutcome::Conflict {
            return Ok(AttemptOutcome::Conflict);
        }
        Ok(AttemptOutcome::Done(ModifyOutcome { rows, returning }))
    }

    /// Writes the new versions of many rows to shards, deletes the old versions, and returns the rows of RETURNING.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write_shard_rows<'a>(
        &'a self,
        table: &'a Arc<Table>,
        many: ShardRows,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<Vec<RecordBatch>>> {
        Box::pin(self.write_shard_rows_unboxed(table, many, transaction, context))
    }

    async fn write_shard_rows_unboxed(
        &self,
        table: &Arc<Table>,
        mut many: ShardRows,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Vec<RecordBatch>> {
        self.write_with_ids(table, std::mem::take(&mut many.rows), transaction, context).await?;
        many.delete_old_versions(transaction)?;
        Ok(many.returning)
    }

    /// Locks the rows, verifies that no other transaction has changed them, and checks the constraints of their new
    /// versions.
    ///
    /// # Errors
    /// Errors of locks and of constraints: `23505`, `23503`, `40P01`, `55P03`, `57014`.
    pub async fn lock_and_check(
        &self,
        table: &Arc<Table>,
        old: &[ColumnId],
        targets: &StatementChanges,
        transaction: &Transaction,
        waits: &LockWaits,
    ) -> SqlResult<AttemptOutcome<()>> {
        let (rows, mode) = (targets.locked_rows(), targets.lock_mode(table, old));
        let locked = transaction.lock_rows(table.oid, &rows, mode, waits.lock_wait());
        waits.wait_for(locked).await?;
        if targets.were_changed(transaction)? {
            return Ok(AttemptOutcome::Conflict);
        }
        check_constraints(
            &self.lookup,
            table,
            &targets.new_rows,
            &targets.old_rows,
            targets.set_columns.as_deref(),
            transaction,
            waits,
        )
        .await
    }
}

/// Returns the number of rows up to which a statement writes new versions as fresh rows; more go to shards directly.
fn changed_rows_max(storage: Storage, context: &RunContext) -> usize {
    match storage {
        Storage::Row => usize::MAX,
        Storage::Column | Storage::Hybrid => context.settings.direct_load_rows(),
    }
}
