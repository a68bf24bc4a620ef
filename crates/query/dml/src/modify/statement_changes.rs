//! The rows that a statement changes: decodes a plan's output into row changes and rows of RETURNING.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Int8Type, Int64Type, Schema};
use binder::Action;
use catalog::{ConstraintKind, RowPosition, Table, TableRows};
use key_lookup::UpdatedRows;
use plan::ROW_ID;
use row_locks::{CheckedRow, serialization_failure};
use scan::{encode_reordered, encode_table_rows, slice_columns};
use storage_error::from_txn;
use txn::locks::RowLock;
use txn::{RowChange, RowFate, Transaction};
use types::{ColumnId, Condition, InjectedBug, Oid, RowId, SqlError, SqlResult};

/// Columns of a plan before those of the table: action, row id, position.
const LEADING_COLUMNS: usize = 3;

/// The rows that a statement changes.
pub struct StatementChanges {
    table: Oid,
    /// Rows of the plan without those whose action is nothing; for patched rows only the columns of RETURNING.
    batches: Vec<RecordBatch>,
    /// Action of each row of `batches`, with the id and position of the existing row if there is one.
    actions: Vec<(Action, Option<(RowId, RowPosition)>)>,
    /// New rows and new versions of rows.
    pub(crate) new_rows: Vec<CheckedRow>,
    /// Previous values of changed and deleted rows in the columns that foreign keys may refer to.
    pub(crate) old_rows: Vec<CheckedRow>,
    /// Columns of `new_rows` that may differ from the old versions; `None` if unknown.
    pub(super) set_columns: Option<Arc<[ColumnId]>>,
    /// True if new rows go directly to shards; `new_rows` is then filled only if constraints need it.
    pub goes_to_shards: bool,
}

impl StatementChanges {
    /// Reads the changes to rows of `table` from `batches`, whose columns are those of [`binder::ModifyPlan`]. With
    /// `once`, two changes to one row are an error.
    pub(crate) fn from_batches(
        table: &Table,
        old: &[ColumnId],
        once: bool,
        batches: Vec<RecordBatch>,
        transaction: &Transaction,
    ) -> SqlResult<Self> {
        Self::from_batches_with_limit(usize::MAX, table, old, once, batches, transaction)
    }

    /// Creates the targets of an UPDATE by key lookup, whose rows are patched in their stored form.
    pub(super) fn from_patched(table: &Table, patched: UpdatedRows) -> Self {
        let UpdatedRows { locations: found, rows, columns, returning } = patched;
        let actions = found.iter().map(|found| (Action::Update, Some((found.row, found.place)))).collect();
        let new_rows = found.iter().zip(rows).map(|(found, tuple)| CheckedRow { id: Some(found.row), tuple }).collect();
        let (batches, old_rows) = (vec![returning], Vec::new());
        Self {
            table: table.oid,
            batches,
            actions,
            new_rows,
            old_rows,
            set_columns: Some(columns),
            goes_to_shards: false,
        }
    }

    /// Reads the changes as [`StatementChanges::from_batches`] does; more than `fresh_rows_max` new rows go to shards.
    ///
    /// # Errors
    /// `21000` for a row that is changed twice, `40001`.
    pub fn from_batches_with_limit(
        fresh_rows_max: usize,
        table: &Table,
        old: &[ColumnId],
        rejects_duplicates: bool,
        batches: Vec<RecordBatch>,
        transaction: &Transaction,
    ) -> SqlResult<Self> {
        let view = transaction.view();
        let rows = view.state.rows(table.oid);
        let mut seen = HashSet::new();
        let mut targets = Self {
            table: table.oid,
            batches: Vec::with_capacity(batches.len()),
            actions: Vec::new(),
            new_rows: Vec::new(),
            old_rows: Vec::new(),
            set_columns: None,
            goes_to_shards: false,
        };
        for batch in batches {
            let kept = targets.add_actions(&batch, rows, &mut seen, rejects_duplicates)?;
            let batch = match kept {
                Some(kept) => filter_record_batch(&batch, &kept).map_err(batch_error)?,
                None => batch,
            };
            targets.batches.push(batch);
        }
        let put = targets.actions.iter().filter(|(action, _)| *action != Action::Delete).count();
        targets.goes_to_shards = fresh_rows_max < put;
        if !targets.goes_to_shards || !old.is_empty() || has_checked_keys(table) {
            targets.read_rows(table, old)?;
        }
        Ok(targets)
    }

    /// Adds the actions of a batch's rows, and returns a filter for the rows that have one, unless all have.
    fn add_actions(
        &mut self,
        batch: &RecordBatch,
        rows: &TableRows,
        seen: &mut HashSet<RowId>,
        once: bool,
    ) -> SqlResult<Option<BooleanArray>> {
        let actions = batch.column(0).as_primitive::<Int8Type>();
        let ids = batch.column(1).as_primitive::<Int64Type>();
        let places = batch.column(2).as_primitive::<Int64Type>();
        let mut kept = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let action = Action::from_value(actions.value(row)).ok_or_else(|| {
                SqlError::internal("a plan's row has an unknown action (not nothing, insert, update or delete)")
            })?;
            let existing = match action {
                Action::Nothing => None,
                Action::Insert => Some(None),
                Action::Update | Action::Delete => {
                    let id = RowId(ids.value(row).cast_unsigned());
                    if seen.insert(id) {
                        Some(Some((id, decode_place(places.value(row), rows)?)))
                    } else if once {
                        return Err(affects_row_twice());
                    } else {
                        None
                    }
                }
            };
            kept.push(existing.is_some());
            if let Some(known) = existing {
                self.actions.push((action, known));
            }
        }
        Ok(kept.contains(&false).then(|| BooleanArray::from(kept)))
    }

    /// Fills `new_rows` and `old_rows` from the batches.
    fn read_rows(&mut self, table: &Table, old_columns: &[ColumnId]) -> SqlResult<()> {
        let mut actions = self.actions.iter();
        for batch in &self.batches {
            let width = table.columns.len();
            let tuples = encode_table_rows(table, &batch.columns()[LEADING_COLUMNS..LEADING_COLUMNS + width])?;
            let old = if old_columns.is_empty() {
                Vec::new()
            } else {
                let start = LEADING_COLUMNS + width;
                encode_reordered(old_columns, &batch.columns()[start..start + old_columns.len()])?
            };
            for (row, tuple) in tuples.into_iter().enumerate() {
                let (action, known) = actions
                    .next()
                    .ok_or_else(|| SqlError::internal("a row from the plan has no insert, update or delete action"))?;
                let id = known.map(|(id, _)| id);
                if let Some(old) = old.get(row).filter(|_| id.is_some()) {
                    self.old_rows.push(CheckedRow { id, tuple: old.clone() });
                }
                if *action != Action::Delete {
                    self.new_rows.push(CheckedRow { id, tuple });
                }
            }
        }
        Ok(())
    }

    /// Returns the existing rows that are changed or deleted, without duplicates.
    fn existing_rows(&self) -> impl Iterator<Item = (RowId, RowPosition)> + '_ {
        self.actions.iter().filter_map(|(_, known)| *known)
    }

    /// Returns the ids of the rows that are changed or deleted, in the order in which all statements lock.
    pub(super) fn locked_rows(&self) -> Vec<RowId> {
        let mut rows: Vec<RowId> = self.existing_rows().map(|(id, _)| id).collect();
        rows.sort_unstable();
        rows
    }

    /// Returns the lock mode for the rows: keys that foreign keys may refer to change only under the strongest lock.
    pub(super) fn lock_mode(&self, table: &Table, old: &[ColumnId]) -> RowLock {
        let is_update = self.actions.iter().all(|(action, _)| *action != Action::Delete);
        let has_key = table.constraints.iter().any(|key| {
            key.enforced && matches!(key.kind, ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. })
        });
        if is_update && (!has_key || old.is_empty()) { RowLock::NoKeyUpdate } else { RowLock::Update }
    }

    /// Returns whether another transaction has changed one of the rows since the statement's snapshot.
    pub(super) fn were_changed(&self, transaction: &Transaction) -> SqlResult<bool> {
        were_changed(self.existing_rows(), self.table, transaction)
    }

    pub(crate) fn count(&self) -> u64 {
        self.actions.len() as u64
    }

    /// Returns the changes to stage and the rows of RETURNING, whose columns are the last `returning` ones.
    ///
    /// # Errors
    /// `XX000` if the plan's rows do not fit its actions.
    pub fn into_changes(
        self,
        returning: Option<usize>,
        transaction: &Transaction,
    ) -> SqlResult<(Vec<RowChange>, Vec<RecordBatch>)> {
        let inserted = self.actions.iter().filter(|(action, _)| *action == Action::Insert).count() as u64;
        let mut next = if 0 < inserted { transaction.allocate_row_ids(inserted) } else { RowId(0) };
        let mut new_rows = self.new_rows.into_iter();
        let mut new_row = || {
            let row = new_rows.next().map(|row| row.tuple);
            row.ok_or_else(|| SqlError::internal("the plan gave fewer new rows than insert and update actions"))
        };
        let mut changes = Vec::with_capacity(self.actions.len());
        for (action, known) in &self.actions {
            changes.push(match (action, known) {
                (Action::Delete, Some((id, place))) => {
                    RowChange { id: *id, old_position: Some(*place), new_version: None }
                }
                (_, Some((id, place))) => {
                    RowChange { id: *id, old_position: Some(*place), new_version: Some(new_row()?) }
                }
                (_, None) => {
                    let id = next;
                    next.0 += 1;
                    RowChange { id, old_position: None, new_version: Some(new_row()?) }
                }
            });
        }
        let Some(returning) = returning else { return Ok((changes, Vec::new())) };
        let returned = self.batches.iter().map(|batch| {
            let start = batch.num_columns() - returning;
            slice_columns(batch, start, returning)
        });
        Ok((changes, returned.collect::<SqlResult<_>>()?))
    }
}

/// Changed and new rows that are written to shards.
pub struct ShardRows {
    table: Oid,
    /// The table's columns, then [`plan::ROW_ID`].
    pub(crate) rows: Vec<RecordBatch>,
    /// Action of each row, as in [`StatementChanges`].
    actions: Vec<(Action, Option<(RowId, RowPosition)>)>,
    /// Rows of RETURNING.
    pub(super) returning: Vec<RecordBatch>,
}

impl StatementChanges {
    /// Returns the rows to write to shards, with their ids, and the rows of RETURNING.
    ///
    /// # Errors
    /// `XX000` if the plan's rows do not fit its actions.
    pub fn into_shard_rows(
        self,
        table: &Table,
        returning: Option<usize>,
        transaction: &Transaction,
    ) -> SqlResult<ShardRows> {
        let inserted = self.actions.iter().filter(|(action, _)| *action == Action::Insert).count() as u64;
        let mut next = if 0 < inserted { transaction.allocate_row_ids(inserted) } else { RowId(0) };
        let (mut rows, mut returned) = (Vec::new(), Vec::new());
        let mut actions = self.actions.iter();
        for batch in &self.batches {
            let mut ids = Vec::with_capacity(batch.num_rows());
            let mut kept = Vec::with_capacity(batch.num_rows());
            for (action, known) in actions.by_ref().take(batch.num_rows()) {
                kept.push(*action != Action::Delete);
                ids.push(known.map_or(next, |(id, _)| id).0.cast_signed());
                next.0 += u64::from(known.is_none());
            }
            let batch_rows = with_ids(batch, table.columns.len(), ids)?;
            rows.push(if kept.contains(&false) {
                filter_record_batch(&batch_rows, &BooleanArray::from(kept)).map_err(batch_error)?
            } else {
                batch_rows
            });
            if let Some(count) = returning {
                returned.push(slice_columns(batch, batch.num_columns() - count, count)?);
            }
        }
        Ok(ShardRows { table: self.table, rows, actions: self.actions, returning: returned })
    }
}

impl ShardRows {
    /// Stages the deletion of the old versions.
    pub(crate) fn delete_old_versions(&self, transaction: &mut Transaction) -> SqlResult<()> {
        let known = self.actions.iter().filter_map(|(_, known)| *known);
        let gone = known.map(|(id, place)| RowChange { id, old_position: Some(place), new_version: None });
        transaction.write_rows(self.table, gone).map_err(from_txn)
    }
}

/// Returns the table's columns of a batch, followed by the row ids.
fn with_ids(batch: &RecordBatch, width: usize, ids: Vec<i64>) -> SqlResult<RecordBatch> {
    let schema = batch.schema();
    let mut fields: Vec<FieldRef> = schema.fields()[LEADING_COLUMNS..LEADING_COLUMNS + width].to_vec();
    fields.push(Arc::new(Field::new(ROW_ID, DataType::Int64, false)));
    let mut columns = batch.columns()[LEADING_COLUMNS..LEADING_COLUMNS + width].to_vec();
    columns.push(Arc::new(Int64Array::from(ids)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(batch_error)
}

/// Returns whether the table has enforced unique keys or foreign keys.
fn has_checked_keys(table: &Table) -> bool {
    let is_reference = |kind: &ConstraintKind| matches!(kind, ConstraintKind::ForeignKey { .. });
    table.row_indexes().any(|index| index.unique)
        || table.constraints.iter().any(|constraint| constraint.enforced && is_reference(&constraint.kind))
}

/// Returns whether another transaction has changed or deleted one of these rows since this transaction's snapshot.
///
/// # Errors
/// `40001` if the isolation level does not allow a newer snapshot.
pub(crate) fn were_changed(
    rows: impl IntoIterator<Item = (RowId, RowPosition)>,
    table: Oid,
    transaction: &Transaction,
) -> SqlResult<bool> {
    if transaction.sees_newest() || InjectedBug::NoWriteConflictCheck.is_active() {
        return Ok(false);
    }
    let now = transaction.newest();
    if transaction.row_counters(table) == now.state.rows(table).counters {
        return Ok(false);
    }
    for (id, place) in rows {
        let what = match transaction.find_row_fate(&now, table, id, place) {
            RowFate::Same(_) => continue,
            RowFate::Changed => "update",
            RowFate::Deleted => "delete",
        };
        return serialization_failure(transaction.isolation(), what).map_or(Ok(true), Err);
    }
    Ok(false)
}

/// Decodes a value of the column `__place` into the position of a row.
///
/// # Errors
/// `XX000` for a shard that `rows` does not have.
pub fn decode_place(place: i64, rows: &TableRows) -> SqlResult<RowPosition> {
    if place < 0 {
        return Ok(RowPosition::Fresh);
    }
    let place = place.cast_unsigned();
    let shard = usize::try_from(place >> 32).ok().and_then(|number| rows.shards.shards.id(number));
    let shard =
        shard.ok_or_else(|| SqlError::internal("a row's position names a shard that the table does not have"))?;
    let ordinal = u32::try_from(place & u64::from(u32::MAX)).expect("an ordinal masked to 32 bits fits u32");
    Ok(RowPosition::Shard { shard, ordinal })
}

/// Returns PostgreSQL's `21000` for a row that one MERGE would change twice.
fn affects_row_twice() -> SqlError {
    SqlError::new(Condition::CardinalityViolation, "MERGE command cannot affect row a second time")
        .with_hint("Ensure that not more than one source row matches any one target row.")
}

fn batch_error(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("rows of an UPDATE, DELETE or MERGE do not match their schema: {error}"))
}
