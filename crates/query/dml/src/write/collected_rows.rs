//! INSERT of collected rows: enforced keys and references, ON CONFLICT and RETURNING need all rows before any is
//! written.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use binder::{ConflictPlan, ConflictUpdate, WritePlan};
use bulk_load::stage_rows;
use catalog::{RowIndex, Storage, Table};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use executor::RunContext;
use functions::error::from_datafusion;
use futures::stream;
use key_lookup::KeyLookupRun;
use row_locks::{
    AttemptOutcome, CheckedRow, LockWaits, check_constraints, lock_and_find_keys, newest_rows, serialization_failure,
};
use rowstore::{Tuple, decode_columns};
use scan::{LocatedRow, column_defs, encode_place, encode_table_rows, slice_columns, stored_column};
use storage_error::{from_catalog, from_rowstore, from_txn};
use txn::Transaction;
use txn::locks::RowLock;
use types::{Condition, RowId, SqlError, SqlResult};

use crate::dml::DmlExecutor;
use crate::modify::{ModifyOutcome, ReferentialActions, StatementChanges, is_seen};

/// Collected rows of an INSERT.
pub(super) struct CollectedRows {
    rows: Vec<CheckedRow>,
    /// The same rows as columns, followed by those of RETURNING; empty if nothing needs columns.
    batches: Vec<RecordBatch>,
}

impl CollectedRows {
    /// Collects the rows of batches whose first columns are the table's.
    pub(super) fn from_batches(table: &Table, batches: Vec<RecordBatch>) -> SqlResult<Self> {
        let width = table.columns.len();
        let mut rows = Vec::new();
        for batch in &batches {
            let tuples = encode_table_rows(table, &batch.columns()[..width])?;
            rows.extend(tuples.into_iter().map(|tuple| CheckedRow { id: None, tuple }));
        }
        Ok(Self { rows, batches })
    }

    /// Collects rows that are inserted as fresh ones, without RETURNING.
    pub(super) fn from_tuples(rows: Vec<Tuple>) -> Self {
        let rows = rows.into_iter().map(|tuple| CheckedRow { id: None, tuple }).collect();
        Self { rows, batches: Vec::new() }
    }
}

impl DmlExecutor {
    /// Resolves conflicts, checks constraints, and stages the remaining rows and the updates of DO UPDATE.
    pub(super) async fn write_collected(
        &self,
        plan: &WritePlan,
        gathered: CollectedRows,
        run: Option<&KeyLookupRun<'_>>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<ModifyOutcome>> {
        let waits = LockWaits::from_context(context);
        let table = &plan.table;
        let width = table.columns.len();
        let CollectedRows { mut rows, mut batches } = gathered;
        let mut updates = None;
        if let Some(conflict) = &plan.conflict {
            let conflicts = Box::pin(self.find_conflicts(table, conflict, &rows, transaction, &waits)).await?;
            let mut has_no_conflict = conflicts.has_no_conflict.iter();
            batches = batches
                .iter()
                .map(|batch| {
                    let kept: BooleanArray =
                        has_no_conflict.by_ref().take(batch.num_rows()).map(|free| Some(*free)).collect();
                    filter_record_batch(batch, &kept).map_err(batch_error)
                })
                .collect::<SqlResult<_>>()?;
            let mut free = conflicts.has_no_conflict.iter();
            let proposed = rows.clone();
            rows.retain(|_| *free.next().unwrap_or(&true));
            if let Some(update) = conflict.update.as_ref().filter(|_| !conflicts.existing.is_empty()) {
                let updated =
                    self.update_conflicting(plan, update, run, &proposed, &conflicts.existing, transaction, context);
                let AttemptOutcome::Done(targets) = Box::pin(updated).await? else {
                    return Ok(AttemptOutcome::Conflict);
                };
                updates = Some(targets);
            }
        }
        if check_constraints(&self.lookup, table, &rows, &[], None, transaction, &waits).await?
            == AttemptOutcome::Conflict
        {
            return Ok(AttemptOutcome::Conflict);
        }
        let mut count = rows.len() as u64;
        let mut returning = Vec::new();
        if let Some(columns) = &plan.returning {
            for batch in &batches {
                returning.push(slice_columns(batch, width, columns.len())?);
            }
        }
        let following = updates.as_ref().map(|targets| ReferentialActions::from_changes(table, targets, transaction));
        self.stage_new_rows(table, batches, rows, transaction, context).await?;
        if let Some(targets) = updates {
            count += targets.count();
            let returned = plan.returning.as_ref().map(Vec::len);
            let (changes, updated) = targets.into_changes(returned, transaction)?;
            transaction.write_rows(table.oid, changes).map_err(from_txn)?;
            returning.extend(updated);
        }
        if let Some((following, conflict)) = following.zip(plan.conflict.as_ref())
            && following.run(self, &conflict.references, transaction, context).await? == AttemptOutcome::Conflict
        {
            return Ok(AttemptOutcome::Conflict);
        }
        Ok(AttemptOutcome::Done(ModifyOutcome { rows: count, returning }))
    }

    /// Stages new rows: few as fresh rows, many as shards.
    async fn stage_new_rows(
        &self,
        table: &Arc<Table>,
        batches: Vec<RecordBatch>,
        rows: Vec<CheckedRow>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        if rows.len() <= super::fresh_rows_max(table.storage, context) {
            return stage_rows(transaction, table, rows.into_iter().map(|row| row.tuple).collect());
        }
        let width = table.columns.len();
        let batches = batches.iter().map(|batch| slice_columns(batch, 0, width)).collect::<SqlResult<Vec<_>>>()?;
        let schema = batches[0].schema();
        let operators = MemorySourceConfig::try_new_exec(&[batches], schema, None).map_err(from_datafusion)?;
        let load = self.loader.new_load(table, transaction, 0);
        let task = Arc::new(datafusion::execution::TaskContext::default().with_runtime(self.executor.runtime()));
        let loaded = Box::pin(self.executor.run_task(context, load.run(operators, task))).await?;
        loaded.stage(transaction).map(drop)
    }

    /// Finds the proposed rows whose key exists already, and the existing row of each.
    async fn find_conflicts(
        &self,
        table: &Arc<Table>,
        conflict: &ConflictPlan,
        rows: &[CheckedRow],
        transaction: &Transaction,
        waits: &LockWaits,
    ) -> SqlResult<Conflicts> {
        let mut free = vec![true; rows.len()];
        let mut taken_by = Vec::new();
        let mut existing_rows = HashSet::new();
        for index in table.row_indexes().filter(|index| conflict.arbiters.contains(&index.oid)) {
            let mut first: HashMap<Vec<u8>, usize> = HashMap::new();
            for (position, row) in rows.iter().enumerate() {
                if !free[position] {
                    continue;
                }
                let (key, has_null) = table.index_key(index.columns, &row.tuple).map_err(from_catalog)?;
                if has_null {
                    continue;
                }
                match first.entry(key) {
                    Entry::Vacant(entry) => {
                        entry.insert(position);
                    }
                    Entry::Occupied(_) if conflict.update.is_some() => return Err(affects_row_twice()),
                    Entry::Occupied(_) => free[position] = false,
                }
            }
            for (position, found) in self.find_existing_keys(table, index, first, transaction, waits).await? {
                free[position] = false;
                if conflict.update.is_some() && !existing_rows.insert(found.row) {
                    return Err(affects_row_twice());
                }
                taken_by.push((position, found));
            }
        }
        Ok(Conflicts { has_no_conflict: free, existing: taken_by })
    }

    /// Looks up the keys in a unique index, and returns the position and the existing row of those that exist.
    async fn find_existing_keys(
        &self,
        table: &Arc<Table>,
        index: RowIndex<'_>,
        keys: HashMap<Vec<u8>, usize>,
        transaction: &Transaction,
        waits: &LockWaits,
    ) -> SqlResult<Vec<(usize, LocatedRow)>> {
        let mut keys: Vec<(Vec<u8>, usize)> = keys.into_iter().collect();
        keys.sort_unstable();
        let (keys, positions): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let found = lock_and_find_keys(&self.lookup, table, index, &keys, transaction, waits).await?;
        Ok(positions.into_iter().zip(found).filter_map(|(position, found)| Some((position, *found.first()?))).collect())
    }

    /// Locks the existing rows of conflicting keys and computes what DO UPDATE makes of them.
    #[expect(clippy::too_many_arguments, reason = "a statement, its rows, and where they go")]
    async fn update_conflicting(
        &self,
        plan: &WritePlan,
        update: &ConflictUpdate,
        run: Option<&KeyLookupRun<'_>>,
        proposed: &[CheckedRow],
        taken: &[(usize, LocatedRow)],
        transaction: &Transaction,
        context: &RunContext,
    ) -> SqlResult<AttemptOutcome<StatementChanges>> {
        let (table, waits) = (&plan.table, LockWaits::from_context(context));
        let mut ids: Vec<RowId> = taken.iter().map(|(_, found)| found.row).collect();
        ids.sort_unstable();
        let locked = transaction.lock_rows(table.oid, &ids, RowLock::Update, waits.lock_wait());
        if waits.wait_for(locked).await?.waited {
            // The lock had to be waited for, so the rows may have changed: run the statement on a newer snapshot.
            return serialization_failure(transaction.isolation(), "update").map_or(Ok(AttemptOutcome::Conflict), Err);
        }
        let rows = newest_rows(transaction, table)?;
        let found: Vec<LocatedRow> = taken.iter().map(|(_, found)| *found).collect();
        let existing = self.lookup.fetch(table, &rows, &found).await?;
        let view = transaction.view();
        let seen = view.state.rows(table.oid);
        if !found.iter().all(|found| is_seen(seen, &rows, found)) {
            // PostgreSQL updates rows that its snapshot does not show; here the statement runs on a newer snapshot.
            return serialization_failure(transaction.isolation(), "update").map_or(Ok(AttemptOutcome::Conflict), Err);
        }
        let columns = column_defs(table).iter().map(stored_column).collect::<SqlResult<Vec<_>>>()?;
        let mut values: Vec<ArrayRef> = Vec::with_capacity(2 + 2 * columns.len());
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| found.row.0.cast_signed()))));
        let places = found.iter().map(|found| encode_place(found.place, seen));
        values.push(Arc::new(Int64Array::from_iter_values(places)));
        values.extend(decode_columns(&existing, &columns, existing.len()).map_err(from_rowstore)?);
        let excluded: Vec<&Tuple> = taken.iter().map(|(position, _)| &proposed[*position].tuple).collect();
        values.extend(decode_columns(excluded, &columns, found.len()).map_err(from_rowstore)?);
        let schema = datafusion::catalog::TableProvider::schema(&*update.input);
        let batch = RecordBatch::try_new(Arc::clone(&schema), values).map_err(batch_error)?;
        let batches = match run {
            Some(run) => vec![run.compute_conflict_update(&batch)?],
            None => {
                let fed = stream::once(async move { Ok(batch) });
                let fed = Box::pin(RecordBatchStreamAdapter::new(schema, fed));
                let plan = Box::new(update.plan.with_input_streams(&update.input, vec![fed]));
                self.executor.collect(&plan, context).await?
            }
        };
        let targets = StatementChanges::from_batches(table, &update.old_columns, false, batches, transaction)?;
        if check_constraints(&self.lookup, table, &targets.new_rows, &targets.old_rows, None, transaction, &waits)
            .await?
            == AttemptOutcome::Conflict
        {
            return Ok(AttemptOutcome::Conflict);
        }
        Ok(AttemptOutcome::Done(targets))
    }
}

/// Conflicts of the rows of an INSERT … ON CONFLICT.
struct Conflicts {
    /// For each proposed row, whether none of its keys exists.
    has_no_conflict: Vec<bool>,
    /// Positions of conflicting proposed rows, each with the existing row that has the key.
    existing: Vec<(usize, LocatedRow)>,
}

/// Returns whether an INSERT must collect all of its rows before it writes one.
pub(super) fn must_collect_rows(plan: &WritePlan) -> bool {
    let table = &plan.table;
    let is_checked = table.row_indexes().any(|index| index.unique)
        || table.constraints.iter().any(|constraint| {
            constraint.enforced && matches!(constraint.kind, catalog::ConstraintKind::ForeignKey { .. })
        });
    plan.returning.is_some() || plan.conflict.is_some() || is_checked || table.storage == Storage::Row
}

/// Returns PostgreSQL's `21000` for a row that one ON CONFLICT DO UPDATE would affect twice.
fn affects_row_twice() -> SqlError {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    SqlError::new(Condition::CardinalityViolation, message).with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}

fn batch_error(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows of an INSERT do not match their schema: {error}"))
}
