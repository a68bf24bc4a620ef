//! Referential actions: when referenced keys vanish, referring rows raise an error, are deleted or are updated,
//! recursively.
//!
//! Runs after the statement's own rows are written: references are looked up in everything committed, with the
//! transaction's changes applied.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use binder::{ConflictUpdate, ReferencePlan, ReferencePlans};
use catalog::{Constraint, ConstraintKind, ReferentialAction, RowPosition, Table, TableRows};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use executor::RunContext;
use futures::stream;
use row_locks::{
    AttemptOutcome, CheckedRow, LockWaits, check_constraints, key_index, newest_rows, serialization_failure,
    still_referenced,
};
use rowstore::{Tuple, decode_columns};
use scan::{KeyColumns, LocatedRow, column_defs, encode_place, stored_column};
use storage_error::{from_catalog, from_rowstore, from_txn};
use txn::locks::{KeyLock, RowLock, TableLock};
use txn::{RollbackPoint, RowChange, Transaction};
use types::{ColumnId, Condition, Oid, RowId, SqlError, SqlResult};

use super::StatementChanges;
use crate::dml::DmlExecutor;

/// Rows of a table that were updated or deleted.
pub(crate) struct ChangedRows {
    pub(crate) table: Arc<Table>,
    /// Previous values of the referenced columns.
    pub(crate) old: Vec<CheckedRow>,
    /// New versions of the rows that still exist.
    pub(crate) new: Vec<CheckedRow>,
}

/// Referential actions to run after rows are written; empty if no foreign key refers to them. The mark is the position
/// to which the transaction rolls back if the statement must run again.
pub(crate) struct ReferentialActions(Option<(ChangedRows, RollbackPoint)>);

impl ReferentialActions {
    /// Marks the transaction's position and copies the changed rows; must be called before the rows are written.
    pub(crate) fn from_changes(table: &Arc<Table>, targets: &StatementChanges, transaction: &Transaction) -> Self {
        if targets.old_rows.is_empty() {
            return Self(None);
        }
        let (old, new) = (targets.old_rows.clone(), targets.new_rows.clone());
        Self(Some((ChangedRows { table: Arc::clone(table), old, new }, transaction.rollback_point())))
    }

    /// Runs the referential actions; must be called after the rows are written.
    ///
    /// # Errors
    /// `23503`, and constraints that changes of referring rows violate.
    pub(crate) async fn run(
        self,
        dml: &DmlExecutor,
        plans: &ReferencePlans,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<()>> {
        let Some((changed, mark)) = self.0 else { return Ok(AttemptOutcome::Done(())) };
        let followed = Box::pin(run_actions(dml, changed, plans, transaction, context)).await?;
        if followed == AttemptOutcome::Conflict {
            transaction.rollback_to_point(&mark).map_err(from_txn)?;
        }
        Ok(followed)
    }
}

/// Foreign key that refers to the rows of a [`ChangedRows`].
struct Reference {
    changed: Arc<ChangedRows>,
    referring: Arc<Table>,
    /// Position of the constraint among those of `referring`.
    constraint: usize,
}

/// Referenced key that was deleted or changed.
struct RemovedKey<'a> {
    old: &'a Tuple,
    /// New version of the row, if it still exists.
    new: Option<&'a Tuple>,
}

/// Executor of referential actions: everything they need beside the transaction.
struct ActionRunner<'a> {
    dml: &'a DmlExecutor,
    plans: &'a BTreeMap<Oid, ReferencePlan>,
    waits: LockWaits,
    context: &'a RunContext,
}

/// Runs the actions of all foreign keys that refer to the changed rows, and recursively of those that refer to rows
/// changed by the actions.
///
/// After [`AttemptOutcome::Conflict`] the caller rolls the transaction back to before the rows were written.
///
/// # Errors
/// `23503`, and constraints that changes of referring rows violate.
async fn run_actions(
    dml: &DmlExecutor,
    changed: ChangedRows,
    plans: &BTreeMap<Oid, ReferencePlan>,
    transaction: &mut Transaction,
    context: &RunContext,
) -> SqlResult<AttemptOutcome<()>> {
    let actor = ActionRunner { dml, plans, waits: LockWaits::from_context(context), context };
    let mut waiting = referring_keys(changed, transaction);
    while let Some(reference) = waiting.pop() {
        for is_delete in [true, false] {
            match actor.run_action(&reference, is_delete, transaction).await? {
                AttemptOutcome::Done(None) => {}
                AttemptOutcome::Done(Some(changed)) => waiting.extend(referring_keys(changed, transaction)),
                AttemptOutcome::Conflict => return Ok(AttemptOutcome::Conflict),
            }
        }
    }
    Ok(AttemptOutcome::Done(()))
}

/// Returns the enforced foreign keys to the changed table, newest first: the caller pops the oldest first.
fn referring_keys(changed: ChangedRows, transaction: &Transaction) -> Vec<Reference> {
    let changed = Arc::new(changed);
    let view = transaction.view();
    let mut found = Vec::new();
    for referring in view.state.tables() {
        for (number, constraint) in referring.constraints.iter().enumerate().filter(|(_, it)| it.enforced) {
            if matches!(&constraint.kind, ConstraintKind::ForeignKey { references, .. } if *references == changed.table.oid)
            {
                let (changed, referring) = (Arc::clone(&changed), Arc::clone(referring));
                found.push((constraint.oid, Reference { changed, referring, constraint: number }));
            }
        }
    }
    found.sort_by_key(|(oid, _)| std::cmp::Reverse(*oid));
    found.into_iter().map(|(_, reference)| reference).collect()
}

impl Reference {
    fn constraint(&self) -> &Constraint {
        &self.referring.constraints[self.constraint]
    }

    /// Returns the deleted (`is_delete`) or changed keys, by their encoded form.
    fn removed_keys(&self, referenced: &[ColumnId], is_delete: bool) -> SqlResult<BTreeMap<Vec<u8>, RemovedKey<'_>>> {
        let ChangedRows { table, old, new } = &*self.changed;
        let now: BTreeMap<RowId, &Tuple> = new.iter().filter_map(|row| Some((row.id?, &row.tuple))).collect();
        let mut gone = BTreeMap::new();
        for row in old {
            let new = row.id.and_then(|id| now.get(&id).copied());
            let (key, has_null) = table.index_key(referenced, &row.tuple).map_err(from_catalog)?;
            let is_same = match new {
                Some(new) => table.index_key(referenced, new).map_err(from_catalog)?.0 == key,
                None => false,
            };
            if !has_null && !is_same && new.is_none() == is_delete {
                gone.insert(key, RemovedKey { old: &row.tuple, new });
            }
        }
        Ok(gone)
    }
}

impl ActionRunner<'_> {
    /// Runs the action of one foreign key for deleted or for changed keys; returns the referring rows that it changed.
    async fn run_action(
        &self,
        reference: &Reference,
        is_delete: bool,
        transaction: &mut Transaction,
    ) -> SqlResult<AttemptOutcome<Option<ChangedRows>>> {
        let constraint = reference.constraint();
        let ConstraintKind::ForeignKey { columns, referenced, on_delete, on_update, .. } = &constraint.kind else {
            return Ok(AttemptOutcome::Done(None));
        };
        let gone = reference.removed_keys(referenced, is_delete)?;
        if gone.is_empty() {
            return Ok(AttemptOutcome::Done(None));
        }
        let action = if is_delete { *on_delete } else { *on_update };
        let (table, referring) = (&reference.changed.table, &reference.referring);
        let keys: Vec<Vec<u8>> = gone.keys().cloned().collect();
        if let Some(index) = key_index(table, referenced) {
            let locked = transaction.lock_keys(index, &keys, KeyLock::Exclusive, self.waits.lock_wait());
            self.waits.wait_for(locked).await?;
        }
        let of = KeyColumns { table: referring, index: key_index(referring, columns), columns };
        let rows = newest_rows(transaction, referring)?;
        let found = self.dml.lookup.find_rows(of, &rows, &keys).await?;
        if found.iter().all(Vec::is_empty) {
            return Ok(AttemptOutcome::Done(None));
        }
        if matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict) {
            let of = KeyColumns { table, index: key_index(table, referenced), columns: referenced };
            let replaced = self.dml.lookup.find_rows(of, &*newest_rows(transaction, table)?, &keys).await?;
            for ((gone, found), replaced) in gone.values().zip(&found).zip(&replaced) {
                let is_replaced = action == ReferentialAction::NoAction && !replaced.is_empty();
                if !found.is_empty() && !is_replaced {
                    return Err(still_referenced(table, referenced, gone.old, referring, constraint));
                }
            }
            return Ok(AttemptOutcome::Done(None));
        }
        let referring_rows: Vec<(LocatedRow, Option<&Tuple>)> =
            gone.values().zip(&found).flat_map(|(gone, found)| found.iter().map(|it| (*it, gone.new))).collect();
        if !self.lock_referring_rows(referring, &referring_rows, &rows, transaction).await? {
            return serialization_failure(transaction.isolation(), "update").map_or(Ok(AttemptOutcome::Conflict), Err);
        }
        if self.dml.lookup.find_rows(of, &*newest_rows(transaction, referring)?, &keys).await? != found {
            return serialization_failure(transaction.isolation(), "update").map_or(Ok(AttemptOutcome::Conflict), Err);
        }
        let places: Vec<LocatedRow> = referring_rows.iter().map(|(found, _)| *found).collect();
        let existing = self.dml.lookup.fetch(referring, &rows, &places).await?;
        if is_delete && action == ReferentialAction::Cascade {
            return delete_referring_rows(referring, &places, existing, transaction)
                .map(|changed| AttemptOutcome::Done(Some(changed)));
        }
        let plan = self
            .plans
            .get(&constraint.oid)
            .and_then(|plan| if is_delete { &plan.delete } else { &plan.update }.as_ref());
        let plan =
            plan.ok_or_else(|| SqlError::internal("the plan has no query for a foreign key's referential action"))?;
        let parents: Vec<&Tuple> = referring_rows.iter().filter_map(|(_, new)| *new).collect();
        let excluded = if action == ReferentialAction::Cascade {
            Some(CascadedKeys { table, referenced, columns, parents })
        } else {
            None
        };
        let targets = self.compute_updates(referring, plan, &places, &existing, excluded, transaction).await?;
        if action == ReferentialAction::SetDefault {
            self.check_set_default(reference, (columns, referenced), &gone, &targets, transaction).await?;
        }
        let (new, old) = (targets.new_rows.clone(), targets.old_rows.clone());
        if check_constraints(&self.dml.lookup, referring, &new, &old, None, transaction, &self.waits).await?
            == AttemptOutcome::Conflict
        {
            return Ok(AttemptOutcome::Conflict);
        }
        let (changes, _) = targets.into_changes(None, transaction)?;
        transaction.write_rows(referring.oid, changes).map_err(from_txn)?;
        Ok(AttemptOutcome::Done(Some(ChangedRows { table: Arc::clone(referring), old, new })))
    }

    /// Checks that no row was set by SET DEFAULT to a key that has just vanished.
    ///
    /// # Errors
    /// `23503` for such a row.
    async fn check_set_default(
        &self,
        reference: &Reference,
        (columns, referenced): (&[ColumnId], &[ColumnId]),
        gone: &BTreeMap<Vec<u8>, RemovedKey<'_>>,
        targets: &StatementChanges,
        transaction: &Transaction,
    ) -> SqlResult<()> {
        let table = &reference.changed.table;
        for row in &targets.new_rows {
            let (key, _) = reference.referring.index_key(columns, &row.tuple).map_err(from_catalog)?;
            let Some(lost) = gone.get(&key) else { continue };
            let of = KeyColumns { table, index: key_index(table, referenced), columns: referenced };
            let found = self.dml.lookup.find_rows(of, &*newest_rows(transaction, table)?, &[key]).await?;
            if found.iter().all(Vec::is_empty) {
                return Err(still_referenced(
                    table,
                    referenced,
                    lost.old,
                    &reference.referring,
                    reference.constraint(),
                ));
            }
        }
        Ok(())
    }

    /// Locks the referring rows; returns whether the transaction's snapshot shows their newest versions.
    async fn lock_referring_rows(
        &self,
        referring: &Table,
        found: &[(LocatedRow, Option<&Tuple>)],
        rows: &TableRows,
        transaction: &Transaction,
    ) -> SqlResult<bool> {
        let locked = transaction.lock_table(referring.oid, TableLock::RowExclusive, self.waits.lock_wait());
        if self.waits.wait_for(locked).await?.waited {
            return Ok(false);
        }
        let mut ids: Vec<RowId> = found.iter().map(|(found, _)| found.row).collect();
        ids.sort_unstable();
        let locked = transaction.lock_rows(referring.oid, &ids, RowLock::Update, self.waits.lock_wait());
        if self.waits.wait_for(locked).await?.waited {
            return Ok(false);
        }
        let view = transaction.view();
        let seen = view.state.rows(referring.oid);
        Ok(found.iter().all(|(found, _)| is_seen(seen, rows, found)))
    }

    /// Computes the new versions of referring rows under an action that updates them.
    async fn compute_updates(
        &self,
        referring: &Arc<Table>,
        plan: &ConflictUpdate,
        found: &[LocatedRow],
        existing: &[Tuple],
        keys: Option<CascadedKeys<'_>>,
        transaction: &Transaction,
    ) -> SqlResult<StatementChanges> {
        let columns = column_defs(referring).iter().map(stored_column).collect::<SqlResult<Vec<_>>>()?;
        let view = transaction.view();
        let seen = view.state.rows(referring.oid);
        let mut values: Vec<ArrayRef> = Vec::with_capacity(2 + 2 * columns.len());
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| found.row.0.cast_signed()))));
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| encode_place(found.place, seen)))));
        let existing = decode_columns(existing, &columns, existing.len()).map_err(from_rowstore)?;
        values.extend(existing.iter().cloned());
        let mut excluded = existing;
        if let Some(keys) = keys {
            keys.replace_in(referring, &mut excluded)?;
        }
        values.extend(excluded);
        let schema = datafusion::catalog::TableProvider::schema(&*plan.input);
        let batch = RecordBatch::try_new(Arc::clone(&schema), values).map_err(|error| batch_error(&error))?;
        let fed = stream::once(async move { Ok(batch) });
        let fed = Box::pin(RecordBatchStreamAdapter::new(schema, fed));
        let fed = Box::new(plan.plan.with_input_streams(&plan.input, vec![fed]));
        let batches = self.dml.executor.collect(&fed, self.context).await?;
        StatementChanges::from_batches(referring, &plan.old_columns, false, batches, transaction)
    }
}

/// Keys that ON UPDATE CASCADE copies into referring rows.
struct CascadedKeys<'a> {
    table: &'a Table,
    referenced: &'a [ColumnId],
    /// Referring columns, one for each of `referenced`.
    columns: &'a [ColumnId],
    /// Referenced row of each referring row.
    parents: Vec<&'a Tuple>,
}

impl CascadedKeys<'_> {
    /// Replaces the referring columns of `rows` by the new keys, cast to the referring columns' types.
    fn replace_in(&self, referring: &Table, rows: &mut [ArrayRef]) -> SqlResult<()> {
        let definitions = column_defs(self.table);
        for (key, column) in self.referenced.iter().zip(self.columns) {
            let position = |table: &Table, id: &ColumnId| table.columns.iter().position(|column| column.id == *id);
            let missing = || SqlError::internal("a foreign key names a column that its table does not have");
            let from = position(self.table, key).ok_or_else(missing)?;
            let to = position(referring, column).ok_or_else(missing)?;
            let stored = [stored_column(&definitions[from])?];
            let values =
                decode_columns(self.parents.iter().copied(), &stored, self.parents.len()).map_err(from_rowstore)?;
            let options = CastOptions { safe: false, ..CastOptions::default() };
            rows[to] = cast_with_options(&values[0], rows[to].data_type(), &options)
                .map_err(|error| SqlError::new(Condition::NumericValueOutOfRange, error.to_string()))?;
        }
        Ok(())
    }
}

/// Stages the deletion of referring rows.
fn delete_referring_rows(
    referring: &Arc<Table>,
    found: &[LocatedRow],
    existing: Vec<Tuple>,
    transaction: &mut Transaction,
) -> SqlResult<ChangedRows> {
    let changes: Vec<RowChange> = found
        .iter()
        .map(|found| RowChange { id: found.row, old_position: Some(found.place), new_version: None })
        .collect();
    transaction.write_rows(referring.oid, changes).map_err(from_txn)?;
    let old = found.iter().zip(existing).map(|(found, tuple)| CheckedRow { id: Some(found.row), tuple });
    Ok(ChangedRows { table: Arc::clone(referring), old: old.collect(), new: Vec::new() })
}

/// Returns whether the snapshot `seen` has the same version of a row that was found in `rows`.
pub(crate) fn is_seen(seen: &TableRows, rows: &TableRows, found: &LocatedRow) -> bool {
    match found.place {
        RowPosition::Fresh => match (seen.fresh_row(found.row), rows.fresh_row(found.row)) {
            (Some(seen), Some(newest)) => Arc::ptr_eq(seen, newest),
            _ => false,
        },
        RowPosition::Shard { shard, ordinal } => {
            seen.shards.shards.position(shard).is_some() && !seen.shards.is_deleted(shard, ordinal)
        }
    }
}

fn batch_error(error: &arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows that refer to a changed key do not match their plan's schema: {error}"))
}
