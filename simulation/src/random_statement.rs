//! Random statements, from the point where their plans have run: locking, checking and staging of rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use bulk_load::stage_rows;
use catalog::Change;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use dml::StatementChanges;
use functions::error::from_datafusion;
use plan::schema_of;
use row_locks::{AttemptOutcome, CheckedRow, LockWaits, check_constraints, lock_tables};
use scan::{KeyColumns, encode_table_rows};
use storage_error::from_txn;
use txn::Transaction;
use txn::locks::TableLock;
use types::{CommitTs, Condition, SqlResult};

use super::actors::{Client, draw_below};
use super::reference_model::{Row, TransactionWrites, Write};
use super::simulated_world::{PRIMARY_KEY, PRIMARY_KEY_COLUMNS, TABLE_ID, run_context};
use super::state_reader::{LocatedRow, decode_tuple, location_number};

/// Number of different keys.
const KEY_COUNT: u64 = 40;
/// Maximum number of attempts of a statement.
const ATTEMPTS_MAX: usize = 100;

/// Random statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Insert {
        rows: u64,
        /// True to write a shard directly.
        into_shard: bool,
    },
    Update(RowFilter),
    Delete(RowFilter),
    Truncate,
}

/// Condition on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowFilter {
    Key(i32),
    /// Row numbers with this remainder (first) for this divisor (second).
    Remainder(i64, i64),
}

impl Statement {
    pub(super) fn draw(client: &Client) -> Self {
        let random = &client.random;
        let key = || RowFilter::Key(draw_key(client));
        let some = || {
            let divisor = 2 + i64::try_from(draw_below(random, 6)).expect("small");
            RowFilter::Remainder(i64::try_from(draw_below(random, 100)).expect("small") % divisor, divisor)
        };
        match draw_below(random, 32) {
            0..10 => Self::Insert { rows: 1 + draw_below(random, 3), into_shard: false },
            10..12 => Self::Insert { rows: 1 + draw_below(random, 6), into_shard: true },
            12..19 => Self::Update(key()),
            19..24 => Self::Update(some()),
            24..28 => Self::Delete(key()),
            28..31 => Self::Delete(some()),
            _ if draw_below(random, 4) == 0 => Self::Truncate,
            _ => Self::Update(some()),
        }
    }
}

impl Client {
    /// Runs the statement, again after each conflict, and records its writes.
    pub(super) async fn run(
        &self,
        statement: Statement,
        transaction: &mut Transaction,
        writes: &mut TransactionWrites,
    ) -> SqlResult<()> {
        for _ in 0..ATTEMPTS_MAX {
            transaction.refresh().map_err(from_txn)?;
            let attempt = match statement {
                Statement::Insert { rows, into_shard } => self.insert(rows, into_shard, transaction, writes).await?,
                Statement::Update(which) => self.modify(which, false, transaction, writes).await?,
                Statement::Delete(which) => self.modify(which, true, transaction, writes).await?,
                Statement::Truncate => self.truncate(transaction, writes).await?,
            };
            if attempt == AttemptOutcome::Done(()) {
                return Ok(());
            }
            self.server.block("again").await;
        }
        panic!("{statement:?} never comes to an end");
    }

    async fn insert(
        &self,
        count: u64,
        into_shard: bool,
        transaction: &mut Transaction,
        writes: &mut TransactionWrites,
    ) -> SqlResult<AttemptOutcome<()>> {
        let server = &*self.server;
        let (table, waits) = (&server.table, LockWaits::from_context(&run_context()));
        let locked = transaction.lock_table(TABLE_ID, TableLock::RowExclusive, waits.lock_wait());
        if waits.wait_for(locked).await?.waited {
            return Ok(AttemptOutcome::Conflict);
        }
        let keys: BTreeSet<i32> = (0..count).map(|_| draw_key(self)).collect();
        let rows: Vec<(i64, Row)> = keys
            .iter()
            .map(|&key| (server.world.draw_number(), Row { key, version: server.world.draw_number() }))
            .collect();
        let columns = to_columns(&rows);
        let new = encode_table_rows(table, &columns)?.into_iter().map(|tuple| CheckedRow { id: None, tuple });
        let new: Vec<CheckedRow> = new.collect();
        let begun = transaction.view().ts;
        let checked = check_constraints(server.execution.lookup(), table, &new, &[], None, transaction, &waits).await;
        self.check_unique_violation(&checked, &keys, begun, writes).await;
        if checked? == AttemptOutcome::Conflict {
            return Ok(AttemptOutcome::Conflict);
        }
        if into_shard {
            let schema = schema_of(&table.columns);
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of the table");
            let operators = MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None).map_err(from_datafusion)?;
            let load = server.execution.loader().new_load(table, transaction, 0);
            let task = Arc::new(TaskContext::default().with_runtime(server.execution.executor().runtime()));
            let loaded = server.execution.executor().run_task(&run_context(), load.run(operators, task)).await?;
            loaded.stage(transaction)?;
        } else {
            stage_rows(transaction, table, new.into_iter().map(|row| row.tuple).collect())?;
        }
        writes
            .rows
            .extend(rows.into_iter().map(|(number, row)| (number, Write { seen_version: None, new_row: Some(row) })));
        Ok(AttemptOutcome::Done(()))
    }

    /// Checks a unique violation: one of the keys must have existed since the statement began.
    async fn check_unique_violation<T>(
        &self,
        checked: &SqlResult<T>,
        keys: &BTreeSet<i32>,
        begun: CommitTs,
        writes: &TransactionWrites,
    ) {
        let Err(error) = checked else { return };
        if error.condition != Condition::UniqueViolation {
            return;
        }
        let now = self.server.current_snapshot().ts;
        // A transaction that has just committed the key and released its lock gets a turn to report it.
        self.server.block("judge").await;
        let mut history = self.server.world.reference_model.lock();
        let was_there = |key: &i32| {
            let own = writes.rows.values().any(|write| write.new_row.is_some_and(|row| row.key == *key));
            own || history.had_key(*key, begun, now)
        };
        assert!(keys.iter().any(was_there), "nobody has a key of {keys:?}: {error:?}");
    }

    async fn modify(
        &self,
        which: RowFilter,
        delete: bool,
        transaction: &mut Transaction,
        writes: &mut TransactionWrites,
    ) -> SqlResult<AttemptOutcome<()>> {
        let server = &*self.server;
        let (table, waits) = (&server.table, LockWaits::from_context(&run_context()));
        let locked = transaction.lock_table(TABLE_ID, TableLock::RowExclusive, waits.lock_wait());
        if waits.wait_for(locked).await?.waited {
            return Ok(AttemptOutcome::Conflict);
        }
        let targets = self.find_rows(which, transaction, writes).await?;
        let mut used = BTreeSet::new();
        let changed: Vec<(i64, Row)> = targets
            .iter()
            .map(|seen| {
                let moves = !delete && draw_below(&self.random, 5) == 0;
                let key = if moves { draw_key(self) } else { seen.row.key };
                used.insert(key);
                (seen.number, Row { key, version: server.world.draw_number() })
            })
            .collect();
        let view = transaction.view();
        let rows = view.state.rows(TABLE_ID);
        let action: i8 = if delete { 3 } else { 2 };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int8Array::from_value(action, targets.len())),
            Arc::new(targets.iter().map(|seen| seen.id.0.cast_signed()).collect::<Int64Array>()),
            Arc::new(targets.iter().map(|seen| location_number(seen.location, rows)).collect::<Int64Array>()),
        ];
        columns.extend(to_columns(&changed));
        let fields = columns.iter().map(|column| Field::new("", DataType::clone(column.data_type()), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema, columns).expect("columns of one length");
        let begun = view.ts;
        drop(view);
        // Zero forces the bulk path.
        let fresh_rows_max = if !delete && draw_below(&self.random, 3) == 0 { 0 } else { usize::MAX };
        let found =
            StatementChanges::from_batches_with_limit(fresh_rows_max, table, &[], false, vec![batch], transaction)?;
        let attempt = server.execution.dml().lock_and_check(table, &[], &found, transaction, &waits).await;
        let is_twice = used.len() < changed.len();
        if !is_twice {
            self.check_unique_violation(&attempt, &used, begun, writes).await;
        }
        if attempt? == AttemptOutcome::Conflict {
            return Ok(AttemptOutcome::Conflict);
        }
        if found.goes_to_shards {
            let many = found.into_shard_rows(table, None, transaction)?;
            server.execution.dml().write_shard_rows(table, many, transaction, &run_context()).await?;
        } else {
            let (changes, _) = found.into_changes(None, transaction)?;
            transaction.write_rows(table.oid, changes).map_err(from_txn)?;
        }
        for (seen, (number, row)) in targets.iter().zip(changed) {
            let write =
                writes.rows.entry(number).or_insert(Write { seen_version: Some(seen.row.version), new_row: None });
            write.new_row = (!delete).then_some(row);
        }
        Ok(AttemptOutcome::Done(()))
    }

    /// Returns the rows that a statement affects, after checking them against the model.
    async fn find_rows(
        &self,
        which: RowFilter,
        transaction: &Transaction,
        writes: &TransactionWrites,
    ) -> SqlResult<Vec<LocatedRow>> {
        let server = &*self.server;
        let view = transaction.view();
        let rows = view.state.rows(TABLE_ID);
        let expected = writes.apply_to(&server.world.reference_model.lock().rows_at(view.ts));
        match which {
            RowFilter::Remainder(rest, divisor) => {
                let mut seen = server.scanner.scan(&server.execution, &server.table, rows).await?;
                let found = seen.iter().map(|seen| (seen.number, seen.row)).collect();
                assert_eq!(expected, found, "what a transaction sees at commit {}", view.ts.0);
                assert_eq!(expected.len(), seen.len(), "no row is there twice: {seen:?}");
                seen.retain(|seen| seen.number % divisor == rest);
                // Concurrent bulk updates lock rows in different orders.
                if draw_below(&self.random, 2) == 0 {
                    seen.reverse();
                }
                Ok(seen)
            }
            RowFilter::Key(key) => {
                let model = encode_table_rows(&server.table, &to_columns(&[(0, Row { key, version: 0 })]))?;
                let (encoded, _) =
                    server.table.index_key(&PRIMARY_KEY_COLUMNS, &model[0]).expect("the key has no NULL");
                let of = KeyColumns { table: &server.table, index: Some(PRIMARY_KEY), columns: &PRIMARY_KEY_COLUMNS };
                let found = server.execution.lookup().find_rows(of, rows, &[encoded]).await?.remove(0);
                let fetched = server.execution.lookup().fetch(&server.table, rows, &found).await?;
                let seen = found.iter().zip(&fetched).map(|(found, tuple)| {
                    let (number, row) = decode_tuple(tuple);
                    LocatedRow { id: found.row, location: found.place, number, row }
                });
                let seen: Vec<LocatedRow> = seen.collect();
                let found: Vec<(i64, Row)> = seen.iter().map(|seen| (seen.number, seen.row)).collect();
                let expected: Vec<(i64, Row)> = expected.into_iter().filter(|(_, row)| row.key == key).collect();
                assert_eq!(expected, found, "the row with key {key} at commit {}", view.ts.0);
                Ok(seen)
            }
        }
    }

    async fn truncate(
        &self,
        transaction: &mut Transaction,
        writes: &mut TransactionWrites,
    ) -> SqlResult<AttemptOutcome<()>> {
        let tables = BTreeSet::from([TABLE_ID]);
        if lock_tables(&tables, &BTreeSet::new(), false, transaction, &run_context()).await? {
            return Ok(AttemptOutcome::Conflict);
        }
        let seen = self.server.world.reference_model.lock().rows_at(transaction.view().ts);
        transaction.stage(vec![Change::RemoveAllRows { table: TABLE_ID }]).map_err(from_txn)?;
        writes.truncated_rows.get_or_insert(seen);
        writes.rows.clear();
        Ok(AttemptOutcome::Done(()))
    }
}

fn draw_key(client: &Client) -> i32 {
    i32::try_from(draw_below(&client.random, KEY_COUNT)).expect("few keys")
}

fn to_columns(rows: &[(i64, Row)]) -> Vec<ArrayRef> {
    vec![
        Arc::new(rows.iter().map(|(number, _)| *number).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|(_, row)| row.key).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|(_, row)| row.version).collect::<Int64Array>()),
    ]
}
