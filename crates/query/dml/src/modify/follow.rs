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
use catalog::{Constraint, ConstraintKind, ReferentialAction, RowPlace, Table, TableRows};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use executor::RunContext;
use futures::stream;
use row_locks::{Attempt, NewRow, Waits, check, key_index, newest, referred, refused};
use rowstore::{Tuple, batch_of};
use scan::{Found, KeyColumns, column_defs, place_value, stored_column};
use storage_error::{from_catalog, from_rowstore, from_txn};
use txn::locks::{KeyLock, RowLock, TableLock};
use txn::{RowChange, Transaction};
use types::{ColumnId, Condition, Oid, RowId, SqlError, SqlResult};

use super::Targets;
use crate::dml::Dml;

/// Rows of a table that were updated or deleted.
pub(crate) struct Changed {
    pub(crate) table: Arc<Table>,
    /// Previous values of the referenced columns.
    pub(crate) old: Vec<NewRow>,
    /// New versions of the rows that still exist.
    pub(crate) new: Vec<NewRow>,
}

/// Referential actions to run after rows are written; empty if no foreign key refers to them.
pub(crate) struct Following(Option<Changed>);

/// Savepoint to which the transaction rolls back if the statement must run again.
const BEFORE: &str = "\u{1}before references";

impl Following {
    /// Sets a savepoint and copies the changed rows; must be called before the rows are written.
    pub(crate) fn of(table: &Arc<Table>, targets: &Targets, transaction: &mut Transaction) -> Self {
        if targets.old_rows.is_empty() {
            return Self(None);
        }
        transaction.savepoint(BEFORE);
        let (old, new) = (targets.old_rows.clone(), targets.new_rows.clone());
        Self(Some(Changed { table: Arc::clone(table), old, new }))
    }

    /// Runs the referential actions; must be called after the rows are written.
    ///
    /// # Errors
    /// `23503`, and constraints that changes of referring rows violate.
    pub(crate) async fn follow(
        self,
        dml: &Dml,
        plans: &ReferencePlans,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<()>> {
        let Some(changed) = self.0 else { return Ok(Attempt::Done(())) };
        let followed = Box::pin(follow(dml, changed, plans, transaction, context)).await?;
        if followed == Attempt::Again {
            transaction.rollback_to(BEFORE).map_err(from_txn)?;
        }
        transaction.release(BEFORE).map_err(from_txn)?;
        Ok(followed)
    }
}

/// Foreign key that refers to the rows of a [`Changed`].
struct Reference {
    changed: Arc<Changed>,
    referring: Arc<Table>,
    /// Position of the constraint among those of `referring`.
    constraint: usize,
}

/// Referenced key that was deleted or changed.
struct Gone<'a> {
    old: &'a Tuple,
    /// New version of the row, if it still exists.
    new: Option<&'a Tuple>,
}

/// Executor of referential actions: everything they need beside the transaction.
struct Actor<'a> {
    dml: &'a Dml,
    plans: &'a BTreeMap<Oid, ReferencePlan>,
    waits: Waits,
    context: &'a RunContext,
}

/// Runs the actions of all foreign keys that refer to the changed rows, and recursively of those that refer to rows
/// changed by the actions.
///
/// After [`Attempt::Again`] the caller rolls the transaction back to before the rows were written.
///
/// # Errors
/// `23503`, and constraints that changes of referring rows violate.
async fn follow(
    dml: &Dml,
    changed: Changed,
    plans: &BTreeMap<Oid, ReferencePlan>,
    transaction: &mut Transaction,
    context: &RunContext,
) -> SqlResult<Attempt<()>> {
    let actor = Actor { dml, plans, waits: Waits::of(context), context };
    let mut waiting = references(changed, transaction);
    while let Some(reference) = waiting.pop() {
        for is_delete in [true, false] {
            match actor.act(&reference, is_delete, transaction).await? {
                Attempt::Done(None) => {}
                Attempt::Done(Some(changed)) => waiting.extend(references(changed, transaction)),
                Attempt::Again => return Ok(Attempt::Again),
            }
        }
    }
    Ok(Attempt::Done(()))
}

/// Returns the enforced foreign keys to the changed table, newest first: the caller pops the oldest first.
fn references(changed: Changed, transaction: &Transaction) -> Vec<Reference> {
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
    fn gone(&self, referenced: &[ColumnId], is_delete: bool) -> SqlResult<BTreeMap<Vec<u8>, Gone<'_>>> {
        let Changed { table, old, new } = &*self.changed;
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
                gone.insert(key, Gone { old: &row.tuple, new });
            }
        }
        Ok(gone)
    }
}

impl Actor<'_> {
    /// Runs the action of one foreign key for deleted or for changed keys; returns the referring rows that it changed.
    async fn act(
        &self,
        reference: &Reference,
        is_delete: bool,
        transaction: &mut Transaction,
    ) -> SqlResult<Attempt<Option<Changed>>> {
        let constraint = reference.constraint();
        let ConstraintKind::ForeignKey { columns, referenced, on_delete, on_update, .. } = &constraint.kind else {
            return Ok(Attempt::Done(None));
        };
        let gone = reference.gone(referenced, is_delete)?;
        if gone.is_empty() {
            return Ok(Attempt::Done(None));
        }
        let action = if is_delete { *on_delete } else { *on_update };
        let (table, referring) = (&reference.changed.table, &reference.referring);
        let keys: Vec<Vec<u8>> = gone.keys().cloned().collect();
        if let Some(index) = key_index(table, referenced) {
            let locked = transaction.lock_keys(index, &keys, KeyLock::Exclusive, self.waits.wait());
            self.waits.interruptibly(locked).await?;
        }
        let of = KeyColumns { table: referring, index: key_index(referring, columns), columns };
        let rows = newest(transaction, referring)?;
        let found = self.dml.lookup.find(of, &rows, &keys).await?;
        if found.iter().all(Vec::is_empty) {
            return Ok(Attempt::Done(None));
        }
        if matches!(action, ReferentialAction::NoAction | ReferentialAction::Restrict) {
            let of = KeyColumns { table, index: key_index(table, referenced), columns: referenced };
            let replaced = self.dml.lookup.find(of, &*newest(transaction, table)?, &keys).await?;
            for ((gone, found), replaced) in gone.values().zip(&found).zip(&replaced) {
                let is_replaced = action == ReferentialAction::NoAction && !replaced.is_empty();
                if !found.is_empty() && !is_replaced {
                    return Err(referred(table, referenced, gone.old, referring, constraint));
                }
            }
            return Ok(Attempt::Done(None));
        }
        let owned: Vec<(Found, Option<&Tuple>)> =
            gone.values().zip(&found).flat_map(|(gone, found)| found.iter().map(|it| (*it, gone.new))).collect();
        if !self.hold(referring, &owned, &rows, transaction).await? {
            return refused(transaction.isolation(), "update").map_or(Ok(Attempt::Again), Err);
        }
        if self.dml.lookup.find(of, &*newest(transaction, referring)?, &keys).await? != found {
            return refused(transaction.isolation(), "update").map_or(Ok(Attempt::Again), Err);
        }
        let places: Vec<Found> = owned.iter().map(|(found, _)| *found).collect();
        let existing = self.dml.lookup.fetch(referring, &rows, &places).await?;
        if is_delete && action == ReferentialAction::Cascade {
            return delete(referring, &places, existing, transaction).map(|changed| Attempt::Done(Some(changed)));
        }
        let plan = self
            .plans
            .get(&constraint.oid)
            .and_then(|plan| if is_delete { &plan.delete } else { &plan.update }.as_ref());
        let plan = plan.ok_or_else(|| SqlError::internal("the plan lacks a referential action"))?;
        let parents: Vec<&Tuple> = owned.iter().filter_map(|(_, new)| *new).collect();
        let excluded = if action == ReferentialAction::Cascade {
            Some(KeysOf { table, referenced, columns, parents })
        } else {
            None
        };
        let targets = self.updated(referring, plan, &places, &existing, excluded, transaction).await?;
        if action == ReferentialAction::SetDefault {
            self.refuse_fallen_back(reference, (columns, referenced), &gone, &targets, transaction).await?;
        }
        let (new, old) = (targets.new_rows.clone(), targets.old_rows.clone());
        if check(&self.dml.lookup, referring, &new, &old, None, transaction, &self.waits).await? == Attempt::Again {
            return Ok(Attempt::Again);
        }
        let (changes, _) = targets.changes(None, transaction)?;
        transaction.write(referring.oid, changes).map_err(from_txn)?;
        Ok(Attempt::Done(Some(Changed { table: Arc::clone(referring), old, new })))
    }

    /// Checks that no row was set by SET DEFAULT to a key that has just vanished.
    ///
    /// # Errors
    /// `23503` for such a row.
    async fn refuse_fallen_back(
        &self,
        reference: &Reference,
        (columns, referenced): (&[ColumnId], &[ColumnId]),
        gone: &BTreeMap<Vec<u8>, Gone<'_>>,
        targets: &Targets,
        transaction: &Transaction,
    ) -> SqlResult<()> {
        let table = &reference.changed.table;
        for row in &targets.new_rows {
            let (key, _) = reference.referring.index_key(columns, &row.tuple).map_err(from_catalog)?;
            let Some(lost) = gone.get(&key) else { continue };
            let of = KeyColumns { table, index: key_index(table, referenced), columns: referenced };
            let found = self.dml.lookup.find(of, &*newest(transaction, table)?, &[key]).await?;
            if found.iter().all(Vec::is_empty) {
                return Err(referred(table, referenced, lost.old, &reference.referring, reference.constraint()));
            }
        }
        Ok(())
    }

    /// Locks the referring rows; returns whether the transaction's snapshot shows their newest versions.
    async fn hold(
        &self,
        referring: &Table,
        found: &[(Found, Option<&Tuple>)],
        rows: &TableRows,
        transaction: &Transaction,
    ) -> SqlResult<bool> {
        let locked = transaction.lock_table(referring.oid, TableLock::RowExclusive, self.waits.wait());
        if self.waits.interruptibly(locked).await?.waited {
            return Ok(false);
        }
        let mut ids: Vec<RowId> = found.iter().map(|(found, _)| found.row).collect();
        ids.sort_unstable();
        let locked = transaction.lock_rows(referring.oid, &ids, RowLock::Update, self.waits.wait());
        if self.waits.interruptibly(locked).await?.waited {
            return Ok(false);
        }
        let view = transaction.view();
        let seen = view.state.rows(referring.oid);
        Ok(found.iter().all(|(found, _)| is_seen(seen, rows, found)))
    }

    /// Computes the new versions of referring rows under an action that updates them.
    async fn updated(
        &self,
        referring: &Arc<Table>,
        plan: &ConflictUpdate,
        found: &[Found],
        existing: &[Tuple],
        keys: Option<KeysOf<'_>>,
        transaction: &Transaction,
    ) -> SqlResult<Targets> {
        let columns = column_defs(referring).iter().map(stored_column).collect::<SqlResult<Vec<_>>>()?;
        let view = transaction.view();
        let seen = view.state.rows(referring.oid);
        let mut values: Vec<ArrayRef> = Vec::with_capacity(2 + 2 * columns.len());
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| found.row.0.cast_signed()))));
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| place_value(found.place, seen)))));
        let existing = batch_of(existing, &columns, existing.len()).map_err(from_rowstore)?;
        values.extend(existing.iter().cloned());
        let mut excluded = existing;
        if let Some(keys) = keys {
            keys.put(referring, &mut excluded)?;
        }
        values.extend(excluded);
        let schema = datafusion::catalog::TableProvider::schema(&*plan.input);
        let batch = RecordBatch::try_new(Arc::clone(&schema), values).map_err(|error| internal(&error))?;
        let fed = stream::once(async move { Ok(batch) });
        let fed = Box::pin(RecordBatchStreamAdapter::new(schema, fed));
        let fed = Box::new(plan.plan.fed(&plan.input, vec![fed]));
        let batches = self.dml.executor.collect(&fed, self.context).await?;
        Targets::of(referring, &plan.old, false, batches, transaction)
    }
}

/// Keys that ON UPDATE CASCADE copies into referring rows.
struct KeysOf<'a> {
    table: &'a Table,
    referenced: &'a [ColumnId],
    /// Referring columns, one for each of `referenced`.
    columns: &'a [ColumnId],
    /// Referenced row of each referring row.
    parents: Vec<&'a Tuple>,
}

impl KeysOf<'_> {
    /// Replaces the referring columns of `rows` by the new keys, cast to the referring columns' types.
    fn put(&self, referring: &Table, rows: &mut [ArrayRef]) -> SqlResult<()> {
        let definitions = column_defs(self.table);
        for (key, column) in self.referenced.iter().zip(self.columns) {
            let position = |table: &Table, id: &ColumnId| table.columns.iter().position(|column| column.id == *id);
            let missing = || SqlError::internal("a foreign key names a column that its table does not have");
            let from = position(self.table, key).ok_or_else(missing)?;
            let to = position(referring, column).ok_or_else(missing)?;
            let stored = [stored_column(&definitions[from])?];
            let values = batch_of(self.parents.iter().copied(), &stored, self.parents.len()).map_err(from_rowstore)?;
            let options = CastOptions { safe: false, ..CastOptions::default() };
            rows[to] = cast_with_options(&values[0], rows[to].data_type(), &options)
                .map_err(|error| SqlError::new(Condition::NumericValueOutOfRange, error.to_string()))?;
        }
        Ok(())
    }
}

/// Stages the deletion of referring rows.
fn delete(
    referring: &Arc<Table>,
    found: &[Found],
    existing: Vec<Tuple>,
    transaction: &mut Transaction,
) -> SqlResult<Changed> {
    let changes: Vec<RowChange> =
        found.iter().map(|found| RowChange { id: found.row, was: Some(found.place), now: None }).collect();
    transaction.write(referring.oid, changes).map_err(from_txn)?;
    let old = found.iter().zip(existing).map(|(found, tuple)| NewRow { id: Some(found.row), tuple });
    Ok(Changed { table: Arc::clone(referring), old: old.collect(), new: Vec::new() })
}

/// Returns whether the snapshot `seen` has the same version of a row that was found in `rows`.
pub(crate) fn is_seen(seen: &TableRows, rows: &TableRows, found: &Found) -> bool {
    match found.place {
        RowPlace::Fresh => match (seen.fresh_row(found.row), rows.fresh_row(found.row)) {
            (Some(seen), Some(newest)) => Arc::ptr_eq(seen, newest),
            _ => false,
        },
        RowPlace::Shard { shard, ordinal } => {
            seen.shards.shards.position(shard).is_some() && !seen.shards.is_deleted(shard, ordinal)
        }
    }
}

fn internal(error: &arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("referring rows do not match their plan's schema: {error}"))
}
