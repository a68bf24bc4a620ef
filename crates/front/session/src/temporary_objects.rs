//! Temporary objects: ON COMMIT actions, and their removal at the end of the session.

use std::sync::Arc;

use binder::{RowLocks, StatementPlan};
use catalog::{CatalogState, Change, Schema, Table};
use storage_error::from_transaction;
use tokio::runtime::Handle;
use txn::{Isolation, Transactions};
use types::{Oid, OnCommit, SqlError, SqlResult};

use crate::instance::Instance;
use crate::session::Session;

/// Attempts to drop temporary objects while background work moves their rows.
const ATTEMPTS_MAX: usize = 10;

impl Instance {
    /// Drops temporary objects that an earlier run of the server has left. To be called before anyone connects.
    ///
    /// # Errors
    /// The storage's, if the catalog cannot be written.
    pub async fn drop_leftover_temporary(&self) -> SqlResult<()> {
        drop_schemas(&self.transactions, Schema::is_temporary).await
    }
}

impl Session {
    /// Stages the ON COMMIT actions of the session's temporary tables in the transaction that is about to commit.
    pub(crate) fn stage_on_commit(&mut self) -> SqlResult<()> {
        if !self.transaction_block.is_open() {
            return Ok(());
        }
        let view = self.transaction_block.view().state;
        let Some(schema) = view.schema_by_name(&self.temp_schema_name()) else { return Ok(()) };
        let changes = on_commit_changes(&view, schema.oid)?;
        if changes.is_empty() {
            Ok(())
        } else {
            self.transaction_block.transaction().stage(changes).map_err(from_transaction)
        }
    }

    /// Stages the removal of all temporary objects: DISCARD TEMPORARY.
    pub(crate) fn discard_temporary(&mut self) -> SqlResult<()> {
        let view = self.transaction_block.view().state;
        let Some(schema) = view.schema_by_name(&self.temp_schema_name()) else { return Ok(()) };
        let changes = drop_changes(&view, &[schema.oid])?;
        self.transaction_block.transaction().stage(changes).map_err(from_transaction)
    }

    /// Returns the work that drops the temporary objects at the end of the session.
    pub fn drop_temporary(&self) -> impl Future<Output = ()> + Send + use<> {
        let (name, transactions) = (self.temp_schema_name(), Arc::clone(&self.instance.transactions));
        let executor = Arc::clone(self.instance.execution.executor());
        async move {
            if transactions.current().state.schema_by_name(&name).is_none() {
                return;
            }
            // There may be many thousands: this runs on a planning thread, so that other connections are served
            // meanwhile.
            let runtime = Handle::current();
            let dropping = async move { drop_schemas(&transactions, |schema| schema.name == name).await };
            if let Err(error) = executor.planning_threads().run(move || runtime.block_on(dropping)).await {
                tracing::warn!(error = error.message, "could not drop temporary objects: the next start drops them");
            }
        }
    }

    fn temp_schema_name(&self) -> String {
        format!("{}{}", Schema::TEMPORARY_PREFIX, self.backend_guard.backend.pid)
    }
}

/// Drops the schemas for which `is_dropped` is true with all their objects.
pub(crate) async fn drop_schemas(
    transactions: &Arc<Transactions>,
    is_dropped: impl Fn(&Schema) -> bool,
) -> SqlResult<()> {
    let mut failure = None;
    for _ in 0..ATTEMPTS_MAX {
        let mut transaction = transactions.begin(Isolation::ReadCommitted);
        let view = transaction.view().state;
        let named: Vec<Oid> = view.schemas().filter(|schema| is_dropped(schema)).map(|schema| schema.oid).collect();
        if named.is_empty() {
            return Ok(());
        }
        transaction.stage(drop_changes(&view, &named)?).map_err(from_transaction)?;
        match transaction.commit().await {
            Ok(_) => return Ok(()),
            // Background work has moved rows meanwhile.
            Err(error) => failure = Some(from_transaction(error)),
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Whether a plan changes or locks rows of temporary tables only, which a read-only transaction may do.
pub(crate) fn affects_only_temporary(planned: &StatementPlan) -> bool {
    let is_temporary = |table: &Table| table.temporary.is_some();
    match planned {
        StatementPlan::Write(plan) => plan.changes_before.is_empty() && is_temporary(&plan.table),
        StatementPlan::Modify(plan) => is_temporary(&plan.table),
        StatementPlan::CopyFrom(plan) => is_temporary(&plan.table),
        StatementPlan::Query(plan) => plan.locks.iter().all(|locks: &RowLocks| is_temporary(&locks.table)),
        StatementPlan::Explain(plan) => affects_only_temporary(&plan.inner),
        _ => false,
    }
}

/// Returns the ON COMMIT actions of a schema's temporary tables as changes.
fn on_commit_changes(view: &CatalogState, schema: Oid) -> SqlResult<Vec<Change>> {
    let tables = || view.tables().filter(|table| table.schema == schema);
    let emptied = tables().filter(|table| table.temporary == Some(OnCommit::DeleteRows));
    let emptied = emptied.filter(|table| !view.rows(table.oid).is_empty());
    let mut changes: Vec<Change> = emptied.map(|table| Change::RemoveAllRows { table: table.oid }).collect();
    let dropped: Vec<Oid> =
        tables().filter(|table| table.temporary == Some(OnCommit::Drop)).map(|table| table.oid).collect();
    changes.extend(drop_changes(view, &dropped)?);
    Ok(changes)
}

/// Returns the changes that drop objects with all that depends on them.
fn drop_changes(view: &CatalogState, named: &[Oid]) -> SqlResult<Vec<Change>> {
    let plan = view.drop_plan(named, true).map_err(|error| SqlError::internal(error.to_string()))?;
    Ok(plan.changes)
}
