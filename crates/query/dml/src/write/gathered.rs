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
use key_lookup::PointRun;
use row_locks::{Attempt, NewRow, Waits, check, newest, refused, taken};
use rowstore::{Tuple, batch_of};
use scan::{Found, column_defs, columns_from, place_value, stored_column, tuples};
use storage_error::{from_catalog, from_rowstore, from_txn};
use txn::Transaction;
use txn::locks::RowLock;
use types::{Condition, RowId, SqlError, SqlResult};

use crate::dml::Dml;
use crate::modify::{Following, Modified, Targets, is_seen};

/// Collected rows of an INSERT.
pub(super) struct Gathered {
    rows: Vec<NewRow>,
    /// The same rows as columns, followed by those of RETURNING; empty if nothing needs columns.
    batches: Vec<RecordBatch>,
}

impl Gathered {
    /// Collects the rows of batches whose first columns are the table's.
    pub(super) fn of_batches(table: &Table, batches: Vec<RecordBatch>) -> SqlResult<Self> {
        let width = table.columns.len();
        let mut rows = Vec::new();
        for batch in &batches {
            let tuples = tuples(table, &batch.columns()[..width])?;
            rows.extend(tuples.into_iter().map(|tuple| NewRow { id: None, tuple }));
        }
        Ok(Self { rows, batches })
    }

    /// Collects rows that are inserted as fresh ones, without RETURNING.
    pub(super) fn of_rows(rows: Vec<Tuple>) -> Self {
        let rows = rows.into_iter().map(|tuple| NewRow { id: None, tuple }).collect();
        Self { rows, batches: Vec::new() }
    }
}

impl Dml {
    /// Resolves conflicts, checks constraints, and stages the remaining rows and the updates of DO UPDATE.
    pub(super) async fn write_gathered(
        &self,
        plan: &WritePlan,
        gathered: Gathered,
        run: Option<&PointRun<'_>>,
        transaction: &mut Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Modified>> {
        let waits = Waits::of(context);
        let table = &plan.table;
        let width = table.columns.len();
        let Gathered { mut rows, mut batches } = gathered;
        let mut updates = None;
        if let Some(conflict) = &plan.conflict {
            let conflicts = Box::pin(self.conflicts(table, conflict, &rows, transaction, &waits)).await?;
            let mut kept = conflicts.free.iter();
            batches = batches
                .iter()
                .map(|batch| {
                    let kept: BooleanArray = kept.by_ref().take(batch.num_rows()).map(|free| Some(*free)).collect();
                    filter_record_batch(batch, &kept).map_err(internal)
                })
                .collect::<SqlResult<_>>()?;
            let mut free = conflicts.free.iter();
            let proposed = rows.clone();
            rows.retain(|_| *free.next().unwrap_or(&true));
            if let Some(update) = conflict.update.as_ref().filter(|_| !conflicts.taken.is_empty()) {
                let updated = self.update_taken(plan, update, run, &proposed, &conflicts.taken, transaction, context);
                let Attempt::Done(targets) = Box::pin(updated).await? else { return Ok(Attempt::Again) };
                updates = Some(targets);
            }
        }
        if check(&self.lookup, table, &rows, &[], None, transaction, &waits).await? == Attempt::Again {
            return Ok(Attempt::Again);
        }
        let mut count = rows.len() as u64;
        let mut returning = Vec::new();
        if let Some(columns) = &plan.returning {
            for batch in &batches {
                returning.push(columns_from(batch, width, columns.len())?);
            }
        }
        let following = updates.as_ref().map(|targets| Following::of(table, targets, transaction));
        self.put(table, batches, rows, transaction, context).await?;
        if let Some(targets) = updates {
            count += targets.count();
            let returned = plan.returning.as_ref().map(Vec::len);
            let (changes, updated) = targets.changes(returned, transaction)?;
            transaction.write(table.oid, changes).map_err(from_txn)?;
            returning.extend(updated);
        }
        if let Some((following, conflict)) = following.zip(plan.conflict.as_ref())
            && following.follow(self, &conflict.references, transaction, context).await? == Attempt::Again
        {
            return Ok(Attempt::Again);
        }
        Ok(Attempt::Done(Modified { rows: count, returning }))
    }

    /// Stages new rows: few as fresh rows, many as shards.
    async fn put(
        &self,
        table: &Arc<Table>,
        batches: Vec<RecordBatch>,
        rows: Vec<NewRow>,
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
        let batches = batches.iter().map(|batch| columns_from(batch, 0, width)).collect::<SqlResult<Vec<_>>>()?;
        let schema = batches[0].schema();
        let operators = MemorySourceConfig::try_new_exec(&[batches], schema, None).map_err(from_datafusion)?;
        let load = self.loader.load(table, transaction, 0);
        let task = Arc::new(datafusion::execution::TaskContext::default().with_runtime(self.executor.runtime()));
        let loaded = Box::pin(self.executor.run(context, load.run(operators, task))).await?;
        loaded.stage(transaction).map(drop)
    }

    /// Finds the proposed rows whose key exists already, and the existing row of each.
    async fn conflicts(
        &self,
        table: &Arc<Table>,
        conflict: &ConflictPlan,
        rows: &[NewRow],
        transaction: &Transaction,
        waits: &Waits,
    ) -> SqlResult<Conflicts> {
        let mut free = vec![true; rows.len()];
        let mut taken_by = Vec::new();
        let mut known = HashSet::new();
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
                    Entry::Occupied(_) if conflict.update.is_some() => return Err(twice()),
                    Entry::Occupied(_) => free[position] = false,
                }
            }
            for (position, found) in self.taken_of(table, index, first, transaction, waits).await? {
                free[position] = false;
                if conflict.update.is_some() && !known.insert(found.row) {
                    return Err(twice());
                }
                taken_by.push((position, found));
            }
        }
        Ok(Conflicts { free, taken: taken_by })
    }

    /// Looks up the keys in a unique index, and returns the position and the existing row of those that exist.
    async fn taken_of(
        &self,
        table: &Arc<Table>,
        index: RowIndex<'_>,
        keys: HashMap<Vec<u8>, usize>,
        transaction: &Transaction,
        waits: &Waits,
    ) -> SqlResult<Vec<(usize, Found)>> {
        let mut keys: Vec<(Vec<u8>, usize)> = keys.into_iter().collect();
        keys.sort_unstable();
        let (keys, positions): (Vec<_>, Vec<_>) = keys.into_iter().unzip();
        let found = taken(&self.lookup, table, index, &keys, transaction, waits).await?;
        Ok(positions.into_iter().zip(found).filter_map(|(position, found)| Some((position, *found.first()?))).collect())
    }

    /// Locks the existing rows of conflicting keys and computes what DO UPDATE makes of them.
    #[expect(clippy::too_many_arguments, reason = "a statement, its rows, and where they go")]
    async fn update_taken(
        &self,
        plan: &WritePlan,
        update: &ConflictUpdate,
        run: Option<&PointRun<'_>>,
        proposed: &[NewRow],
        taken: &[(usize, Found)],
        transaction: &Transaction,
        context: &RunContext,
    ) -> SqlResult<Attempt<Targets>> {
        let (table, waits) = (&plan.table, Waits::of(context));
        let mut ids: Vec<RowId> = taken.iter().map(|(_, found)| found.row).collect();
        ids.sort_unstable();
        let locked = transaction.lock_rows(table.oid, &ids, RowLock::Update, waits.wait());
        if waits.interruptibly(locked).await?.waited {
            // The lock had to be waited for, so the rows may have changed: run the statement on a newer snapshot.
            return refused(transaction.isolation(), "update").map_or(Ok(Attempt::Again), Err);
        }
        let rows = newest(transaction, table)?;
        let found: Vec<Found> = taken.iter().map(|(_, found)| *found).collect();
        let existing = self.lookup.fetch(table, &rows, &found).await?;
        let view = transaction.view();
        let seen = view.state.rows(table.oid);
        if !found.iter().all(|found| is_seen(seen, &rows, found)) {
            // PostgreSQL updates rows that its snapshot does not show; here the statement runs on a newer snapshot.
            return refused(transaction.isolation(), "update").map_or(Ok(Attempt::Again), Err);
        }
        let columns = column_defs(table).iter().map(stored_column).collect::<SqlResult<Vec<_>>>()?;
        let mut values: Vec<ArrayRef> = Vec::with_capacity(2 + 2 * columns.len());
        values.push(Arc::new(Int64Array::from_iter_values(found.iter().map(|found| found.row.0.cast_signed()))));
        let places = found.iter().map(|found| place_value(found.place, seen));
        values.push(Arc::new(Int64Array::from_iter_values(places)));
        values.extend(batch_of(&existing, &columns, existing.len()).map_err(from_rowstore)?);
        let excluded: Vec<&Tuple> = taken.iter().map(|(position, _)| &proposed[*position].tuple).collect();
        values.extend(batch_of(excluded, &columns, found.len()).map_err(from_rowstore)?);
        let schema = datafusion::catalog::TableProvider::schema(&*update.input);
        let batch = RecordBatch::try_new(Arc::clone(&schema), values).map_err(internal)?;
        let batches = match run {
            Some(run) => vec![run.update(&batch)?],
            None => {
                let fed = stream::once(async move { Ok(batch) });
                let fed = Box::pin(RecordBatchStreamAdapter::new(schema, fed));
                let plan = Box::new(update.plan.fed(&update.input, vec![fed]));
                self.executor.collect(&plan, context).await?
            }
        };
        let targets = Targets::of(table, &update.old, false, batches, transaction)?;
        if check(&self.lookup, table, &targets.new_rows, &targets.old_rows, None, transaction, &waits).await?
            == Attempt::Again
        {
            return Ok(Attempt::Again);
        }
        Ok(Attempt::Done(targets))
    }
}

/// Conflicts of the rows of an INSERT … ON CONFLICT.
struct Conflicts {
    /// For each proposed row, whether none of its keys exists.
    free: Vec<bool>,
    /// Positions of conflicting proposed rows, each with the existing row that has the key.
    taken: Vec<(usize, Found)>,
}

/// Returns whether an INSERT must collect all of its rows before it writes one.
pub(super) fn is_gathered(plan: &WritePlan) -> bool {
    let table = &plan.table;
    let is_checked = table.row_indexes().any(|index| index.unique)
        || table.constraints.iter().any(|constraint| {
            constraint.enforced && matches!(constraint.kind, catalog::ConstraintKind::ForeignKey { .. })
        });
    plan.returning.is_some() || plan.conflict.is_some() || is_checked || table.storage == Storage::Row
}

/// Returns PostgreSQL's `21000` for a row that one ON CONFLICT DO UPDATE would affect twice.
fn twice() -> SqlError {
    let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
    SqlError::new(Condition::CardinalityViolation, message).with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}

fn internal(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows of an INSERT do not match their schema: {error}"))
}
