//! What a plan's rows say: which rows of the table are changed, to what, and what RETURNING gives of them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Int8Type, Int64Type, Schema};
use binder::Action;
use catalog::{ConstraintKind, RowPlace, Table, TableRows};
use key_lookup::Patched;
use plan::ROW_ID;
use row_locks::{NewRow, refused};
use scan::{columns_from, ordered_rows, tuples};
use storage_error::from_txn;
use txn::locks::RowLock;
use txn::{RowChange, RowNow, Transaction};
use types::{ColumnId, Condition, Mutation, Oid, RowId, SqlError, SqlResult};

/// Columns of a plan before those of the table.
const LEADING: usize = 3;

/// The rows that a statement changes.
pub struct Targets {
    table: Oid,
    /// The plan's rows without those that do nothing; of rows that are patched what RETURNING gives alone.
    batches: Vec<RecordBatch>,
    /// For each row of `batches` what happens, and where the statement saw a row that was there.
    actions: Vec<(Action, Option<(RowId, RowPlace)>)>,
    /// What is put into the table.
    pub(crate) new_rows: Vec<NewRow>,
    /// Old keys that foreign keys of others may refer to, with the columns they are of.
    pub(crate) old_rows: Vec<NewRow>,
    /// The columns of `new_rows` that are not as they were; `None` where that is not known.
    pub(super) set: Option<Arc<[ColumnId]>>,
    /// What is put into the table goes to shards at once: `new_rows` are there only where constraints ask for them.
    pub are_many: bool,
}

impl Targets {
    /// The changes to rows of `table` in `batches`, whose columns are those of [`binder::ModifyPlan`]. With `once`, two changes to one row are an
    /// error.
    pub(crate) fn of(
        table: &Table,
        old: &[ColumnId],
        once: bool,
        batches: Vec<RecordBatch>,
        transaction: &Transaction,
    ) -> SqlResult<Self> {
        Self::of_at_most(usize::MAX, table, old, once, batches, transaction)
    }

    /// Rows that an UPDATE by key changes.
    pub(super) fn patched(table: &Table, patched: Patched) -> Self {
        let Patched { found, rows, columns, returning } = patched;
        let actions = found.iter().map(|found| (Action::Update, Some((found.row, found.place)))).collect();
        let new_rows = found.iter().zip(rows).map(|(found, tuple)| NewRow { id: Some(found.row), tuple }).collect();
        let (batches, old_rows) = (vec![returning], Vec::new());
        Self { table: table.oid, batches, actions, new_rows, old_rows, set: Some(columns), are_many: false }
    }

    /// As [`Targets::of`]; more than `fresh_rows_max` rows that are put into the table are many.
    ///
    /// # Errors
    /// `21000` for a row that is changed twice, `40001`.
    pub fn of_at_most(
        fresh_rows_max: usize,
        table: &Table,
        old: &[ColumnId],
        once: bool,
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
            set: None,
            are_many: false,
        };
        for batch in batches {
            let kept = targets.add_actions(&batch, rows, &mut seen, once)?;
            let batch = match kept {
                Some(kept) => filter_record_batch(&batch, &kept).map_err(internal)?,
                None => batch,
            };
            targets.batches.push(batch);
        }
        let put = targets.actions.iter().filter(|(action, _)| *action != Action::Delete).count();
        targets.are_many = fresh_rows_max < put;
        if !targets.are_many || !old.is_empty() || has_checked_keys(table) {
            targets.read_rows(table, old)?;
        }
        Ok(targets)
    }

    /// Takes note of what happens to the rows of a batch; which of them count, if not all.
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
            let action = Action::of(actions.value(row)).ok_or_else(|| SqlError::internal("an unknown action"))?;
            let known = match action {
                Action::Nothing => None,
                Action::Insert => Some(None),
                Action::Update | Action::Delete => {
                    let id = RowId(ids.value(row).cast_unsigned());
                    if seen.insert(id) {
                        Some(Some((id, place_of(places.value(row), rows)?)))
                    } else if once {
                        return Err(twice());
                    } else {
                        None
                    }
                }
            };
            kept.push(known.is_some());
            if let Some(known) = known {
                self.actions.push((action, known));
            }
        }
        Ok(kept.contains(&false).then(|| BooleanArray::from(kept)))
    }

    fn read_rows(&mut self, table: &Table, old_columns: &[ColumnId]) -> SqlResult<()> {
        let mut actions = self.actions.iter();
        for batch in &self.batches {
            let width = table.columns.len();
            let tuples = tuples(table, &batch.columns()[LEADING..LEADING + width])?;
            let old = if old_columns.is_empty() {
                Vec::new()
            } else {
                let start = LEADING + width;
                ordered_rows(old_columns, &batch.columns()[start..start + old_columns.len()])?
            };
            for (row, tuple) in tuples.into_iter().enumerate() {
                let (action, known) = actions.next().ok_or_else(|| SqlError::internal("a row without an action"))?;
                let id = known.map(|(id, _)| id);
                if let Some(old) = old.get(row).filter(|_| id.is_some()) {
                    self.old_rows.push(NewRow { id, tuple: old.clone() });
                }
                if *action != Action::Delete {
                    self.new_rows.push(NewRow { id, tuple });
                }
            }
        }
        Ok(())
    }

    /// The rows that were there, each once.
    fn known(&self) -> impl Iterator<Item = (RowId, RowPlace)> + '_ {
        self.actions.iter().filter_map(|(_, known)| *known)
    }

    /// The rows that are changed or deleted, in the order in which everyone locks.
    pub(super) fn locked_rows(&self) -> Vec<RowId> {
        let mut rows: Vec<RowId> = self.known().map(|(id, _)| id).collect();
        rows.sort_unstable();
        rows
    }

    /// How strongly they are locked: keys that others may refer to change only under the strongest lock.
    pub(super) fn lock(&self, table: &Table, old: &[ColumnId]) -> RowLock {
        let is_update = self.actions.iter().all(|(action, _)| *action != Action::Delete);
        let has_key = table.constraints.iter().any(|key| {
            key.enforced && matches!(key.kind, ConstraintKind::PrimaryKey { .. } | ConstraintKind::Unique { .. })
        });
        if is_update && (!has_key || old.is_empty()) { RowLock::NoKeyUpdate } else { RowLock::Update }
    }

    /// Whether another transaction has changed one of the rows since the statement saw it.
    pub(super) fn were_changed(&self, transaction: &Transaction) -> SqlResult<bool> {
        were_changed(self.known(), self.table, transaction)
    }

    pub(crate) fn count(&self) -> u64 {
        self.actions.len() as u64
    }

    /// What is staged, and what RETURNING gives: its columns are the last `returning` ones.
    ///
    /// # Errors
    /// A plan whose rows are not what it promised.
    pub fn changes(
        self,
        returning: Option<usize>,
        transaction: &Transaction,
    ) -> SqlResult<(Vec<RowChange>, Vec<RecordBatch>)> {
        let inserted = self.actions.iter().filter(|(action, _)| *action == Action::Insert).count() as u64;
        let mut next = if 0 < inserted { transaction.allocate_row_ids(inserted) } else { RowId(0) };
        let mut new_rows = self.new_rows.into_iter();
        let mut new_row = || {
            let row = new_rows.next().map(|row| row.tuple);
            row.ok_or_else(|| SqlError::internal("a row without values"))
        };
        let mut changes = Vec::with_capacity(self.actions.len());
        for (action, known) in &self.actions {
            changes.push(match (action, known) {
                (Action::Delete, Some((id, place))) => RowChange { id: *id, was: Some(*place), now: None },
                (_, Some((id, place))) => RowChange { id: *id, was: Some(*place), now: Some(new_row()?) },
                (_, None) => {
                    let id = next;
                    next.0 += 1;
                    RowChange { id, was: None, now: Some(new_row()?) }
                }
            });
        }
        let Some(returning) = returning else { return Ok((changes, Vec::new())) };
        let returned = self.batches.iter().map(|batch| {
            let start = batch.num_columns() - returning;
            columns_from(batch, start, returning)
        });
        Ok((changes, returned.collect::<SqlResult<_>>()?))
    }
}

/// Changed and new rows on their way to shards.
pub struct Many {
    table: Oid,
    /// The table's columns, then [`plan::ROW_ID`].
    pub(crate) rows: Vec<RecordBatch>,
    /// For each row what happens, as [`Targets`] has it.
    actions: Vec<(Action, Option<(RowId, RowPlace)>)>,
    pub(super) returning: Vec<RecordBatch>,
}

impl Targets {
    /// The same for rows that go to shards, ids and all.
    ///
    /// # Errors
    /// A plan whose rows are not what it promised.
    pub fn many(self, table: &Table, returning: Option<usize>, transaction: &Transaction) -> SqlResult<Many> {
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
                filter_record_batch(&batch_rows, &BooleanArray::from(kept)).map_err(internal)?
            } else {
                batch_rows
            });
            if let Some(count) = returning {
                returned.push(columns_from(batch, batch.num_columns() - count, count)?);
            }
        }
        Ok(Many { table: self.table, rows, actions: self.actions, returning: returned })
    }
}

impl Many {
    /// Takes away the versions that were there.
    pub(crate) fn take_away(&self, transaction: &mut Transaction) -> SqlResult<()> {
        let known = self.actions.iter().filter_map(|(_, known)| *known);
        let gone = known.map(|(id, place)| RowChange { id, was: Some(place), now: None });
        transaction.write(self.table, gone).map_err(from_txn)
    }
}

/// The columns of the table of a batch, then its rows' ids.
fn with_ids(batch: &RecordBatch, width: usize, ids: Vec<i64>) -> SqlResult<RecordBatch> {
    let schema = batch.schema();
    let mut fields: Vec<FieldRef> = schema.fields()[LEADING..LEADING + width].to_vec();
    fields.push(Arc::new(Field::new(ROW_ID, DataType::Int64, false)));
    let mut columns = batch.columns()[LEADING..LEADING + width].to_vec();
    columns.push(Arc::new(Int64Array::from(ids)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(internal)
}

/// Whether keys or references of the table are enforced.
fn has_checked_keys(table: &Table) -> bool {
    let is_reference = |kind: &ConstraintKind| matches!(kind, ConstraintKind::ForeignKey { .. });
    table.row_indexes().any(|index| index.unique)
        || table.constraints.iter().any(|constraint| constraint.enforced && is_reference(&constraint.kind))
}

/// Whether another transaction has changed or deleted one of these rows since this one's view; `40001` where it may not look again.
pub(crate) fn were_changed(
    rows: impl IntoIterator<Item = (RowId, RowPlace)>,
    table: Oid,
    transaction: &Transaction,
) -> SqlResult<bool> {
    if transaction.sees_newest() || Mutation::ChangesUnnoticed.is_on() {
        return Ok(false);
    }
    let now = transaction.newest();
    if transaction.history(table) == now.state.rows(table).history {
        return Ok(false);
    }
    for (id, place) in rows {
        let what = match transaction.row_now(&now, table, id, place) {
            RowNow::Same(_) => continue,
            RowNow::Changed => "update",
            RowNow::Deleted => "delete",
        };
        return refused(transaction.isolation(), what).map_or(Ok(true), Err);
    }
    Ok(false)
}

/// Where the value of `__place` says that a row is.
///
/// # Errors
/// A shard that `rows` does not have.
pub fn place_of(place: i64, rows: &TableRows) -> SqlResult<RowPlace> {
    if place < 0 {
        return Ok(RowPlace::Fresh);
    }
    let place = place.cast_unsigned();
    let shard = usize::try_from(place >> 32).ok().and_then(|number| rows.shards.shards.id(number));
    let shard = shard.ok_or_else(|| SqlError::internal("a row of a shard that is not there"))?;
    let ordinal = u32::try_from(place & u64::from(u32::MAX)).expect("32 bits");
    Ok(RowPlace::Shard { shard, ordinal })
}

fn twice() -> SqlError {
    SqlError::new(Condition::CardinalityViolation, "MERGE command cannot affect row a second time")
        .with_hint("Ensure that not more than one source row matches any one target row.")
}

fn internal(error: arrow::error::ArrowError) -> SqlError {
    SqlError::internal(format!("changed rows: {error}"))
}
