//! UPDATE, DELETE and MERGE: the plan computes the changes of rows, which are locked, verified, checked and staged.
//!
//! A statement's plan runs to its end before rows are locked. If another transaction has changed one of the rows
//! meanwhile, the statement runs again on a newer snapshot ([`Attempt::Again`]) and keeps its locks; so no plan has to
//! re-evaluate single rows, as PostgreSQL's EvalPlanQual does.
//!
//! - `targets.rs`: the rows that a statement changes, read from the plan's output.
//! - `follow.rs`: referential actions (ON DELETE, ON UPDATE).
//! - `locking_query.rs`: SELECT … FOR UPDATE and the weaker locks.

use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::ModifyPlan;
use catalog::{Storage, Table};
use executor::RunContext;
use futures::future::BoxFuture;
use key_lookup::PointRun;
use row_locks::{Attempt, Waits, check, lock_for_rows};
use storage_error::from_txn;
use txn::Transaction;
use types::{ColumnId, SqlResult};

use crate::dml::Dml;

mod follow;
mod locking_query;
mod targets;

pub(crate) use follow::{Following, is_seen};
pub use targets::{Many, Targets, place_of};

/// Outcome of a statement that changes rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Modified {
    /// Number of rows that were inserted, updated or deleted.
    pub rows: u64,
    /// Rows of RETURNING; empty without one.
    pub returning: Vec<RecordBatch>,
}

impl Modified {
    pub(crate) fn none() -> Self {
        Self { rows: 0, returning: Vec::new() }
    }
}

impl Dml {
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
    ) -> BoxFuture<'a, SqlResult<Attempt<Modified>>> {
        Box::pin(self.modify_unboxed(plan, transaction, context))
    }

    async fn modify_unboxed(
        &self,
        plan: &ModifyPlan,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Attempt::Again);
        }
        let rows = self.executor.collect(&plan.input, context).await?;
        self.modify_rows(plan, rows, transaction, context).await
    }

    /// Changes rows that a compiled key-lookup plan finds for its parameters; `None` if the plan must be run by
    /// operators instead.
    ///
    /// # Errors
    /// As [`Dml::modify`].
    pub async fn modify_by_key(
        &self,
        plan: &ModifyPlan,
        run: &PointRun<'_>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Option<Attempt<Modified>>> {
        if lock_for_rows(&plan.table, transaction, context).await? {
            return Ok(Some(Attempt::Again));
        }
        if let Some(patched) = run.patched(&self.lookup, transaction).await?
            && patched.rows.len() <= changed_rows_max(plan.table.storage, context)
        {
            let targets = Targets::patched(&plan.table, patched);
            return self.modify_targets(plan, targets, transaction, context).await.map(Some);
        }
        let Some(rows) = run.batches(&self.lookup, transaction).await? else { return Ok(None) };
        self.modify_rows(plan, rows, transaction, context).await.map(Some)
    }

    async fn modify_rows(
        &self,
        plan: &ModifyPlan,
        batches: Vec<RecordBatch>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        let (fresh_rows_max, once) = (changed_rows_max(plan.table.storage, context), plan.tag == "MERGE");
        let targets = Targets::of_at_most(fresh_rows_max, &plan.table, &plan.old, once, batches, transaction)?;
        self.modify_targets(plan, targets, transaction, context).await
    }

    async fn modify_targets(
        &self,
        plan: &ModifyPlan,
        targets: Targets,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        let waits = Waits::of(context);
        if self.claim(&plan.table, &plan.old, &targets, transaction, &waits).await? == Attempt::Again {
            return Ok(Attempt::Again);
        }
        let rows = targets.count();
        let following = Following::of(&plan.table, &targets, transaction);
        let returning = plan.returning.as_ref().map(Vec::len);
        let returning = if targets.are_many {
            let many = targets.many(&plan.table, returning, transaction)?;
            self.write_many(&plan.table, many, transaction, context).await?
        } else {
            let (changes, returning) = targets.changes(returning, transaction)?;
            transaction.write(plan.table.oid, changes).map_err(from_txn)?;
            returning
        };
        if following.follow(self, &plan.references, transaction, context).await? == Attempt::Again {
            return Ok(Attempt::Again);
        }
        Ok(Attempt::Done(Modified { rows, returning }))
    }

    /// Writes the new versions of many rows to shards, deletes the old versions, and returns the rows of RETURNING.
    ///
    /// # Errors
    /// Errors of the storage.
    pub fn write_many<'a>(
        &'a self,
        table: &'a Arc<Table>,
        many: Many,
        transaction: &'a mut Transaction,
        context: &'a RunContext,
    ) -> BoxFuture<'a, SqlResult<Vec<RecordBatch>>> {
        Box::pin(self.write_many_unboxed(table, many, transaction, context))
    }

    async fn write_many_unboxed(
        &self,
        table: &Arc<Table>,
        mut many: Many,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Vec<RecordBatch>> {
        self.write_with_ids(table, std::mem::take(&mut many.rows), transaction, context).await?;
        many.take_away(transaction)?;
        Ok(many.returning)
    }

    /// Locks the rows, verifies that no other transaction has changed them, and checks the constraints of their new
    /// versions.
    ///
    /// # Errors
    /// Errors of locks and of constraints: `23505`, `23503`, `40P01`, `55P03`, `57014`.
    pub async fn claim(
        &self,
        table: &Arc<Table>,
        old: &[ColumnId],
        targets: &Targets,
        transaction: &Transaction,
        waits: &Waits,
    ) -> SqlResult<Attempt<()>> {
        let (rows, mode) = (targets.locked_rows(), targets.lock(table, old));
        let locked = transaction.lock_rows(table.oid, &rows, mode, waits.wait());
        waits.interruptibly(locked).await?;
        if targets.were_changed(transaction)? {
            return Ok(Attempt::Again);
        }
        check(&self.lookup, table, &targets.new_rows, &targets.old_rows, targets.set.as_deref(), transaction, waits)
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
