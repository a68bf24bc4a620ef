//! Reads the rows of a state, directly from storage or through a scan.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int32Type, Int64Type};
use catalog::{RowPosition, Table, TableRows};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionConfig;
use dml::decode_place;
use execution::Execution;
use functions::error::from_datafusion;
use futures::TryStreamExt;
use objects::Objects;
use parking_lot::Mutex;
use plan::ShardTable;
use rowstore::{Tuple, Value};
use scan::{UNFLUSHED_PLACE, column_defs, row_locator_columns};
use shards::{ColumnDef, ROW_ID_COLUMN, RowGroupRead, RowIds, ShardMeta, ShardReader};
use types::{ColumnId, RowId, ShardId, SqlResult};

use super::reference_model::{Row, Rows};

/// Row with its location.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocatedRow {
    pub(super) id: RowId,
    pub(super) location: RowPosition,
    pub(super) number: i64,
    pub(super) row: Row,
}

/// Reads states without the code under test: shards directly from storage, once each.
#[derive(Debug)]
pub(super) struct StateReader {
    objects: Objects,
    shards: Mutex<HashMap<ShardId, Arc<Vec<LocatedRow>>>>,
    /// Id that each row got at insertion, by row number.
    ids: Mutex<BTreeMap<i64, RowId>>,
}

impl StateReader {
    pub(super) fn new(objects: Objects) -> Self {
        Self { objects, shards: Mutex::default(), ids: Mutex::default() }
    }

    /// Returns all rows of a state.
    pub(super) async fn rows(&self, table: &Arc<Table>, rows: &TableRows) -> Rows {
        let mut seen: Vec<LocatedRow> = rows
            .fresh_rows()
            .map(|(id, version)| {
                let (number, row) = decode_tuple(&version.tuple);
                LocatedRow { id, location: RowPosition::Fresh, number, row }
            })
            .collect();
        for shard in rows.shards.shards.iter() {
            let deleted = rows.deleted_positions(shard.id);
            let is_there = |ordinal: u32| deleted.as_ref().is_none_or(|deleted| !deleted.contains(ordinal));
            let all = self.shard(table, &shard).await;
            seen.extend(all.iter().zip(0..).filter(|(_, ordinal)| is_there(*ordinal)).map(|(seen, _)| *seen));
        }
        assert_eq!(seen.len() as u64, rows.len(), "the count of the rows: {seen:?}");
        let mut found = Rows::new();
        let mut ids = self.ids.lock();
        for LocatedRow { id, number, row, location: place } in seen {
            if let Some(other) = found.insert(number, row) {
                panic!("row {number} is there twice: {other:?} and {row:?} at {place:?}");
            }
            let first = *ids.entry(number).or_insert(id);
            assert_eq!(first, id, "row {number} keeps its id");
        }
        found
    }

    async fn shard(&self, table: &Arc<Table>, shard: &Arc<ShardMeta>) -> Arc<Vec<LocatedRow>> {
        if let Some(known) = self.shards.lock().get(&shard.id) {
            return Arc::clone(known);
        }
        let mut columns = column_defs(table);
        let stored = shard.row_ids == RowIds::Stored;
        columns.extend(row_locator_columns().into_iter().filter(|column| stored && column.id == ROW_ID_COLUMN));
        let columns: Arc<[ColumnDef]> = columns.into();
        let reader = ShardReader::open(&self.objects, shard).await.expect("a shard that is referenced is there");
        let mut rows = Vec::new();
        for row_group in 0..shard.row_groups.len() {
            let read = RowGroupRead {
                row_group,
                rows: 0..usize::MAX,
                columns: Arc::clone(&columns),
                predicates: Vec::new(),
                deleted: None,
                batch_rows: 8_192,
                fetched_bytes: Arc::default(),
                removed_rows: Arc::default(),
                predicate_order: Arc::default(),
            };
            let read = reader.read(&read).expect("the row group is there").batches;
            for batch in read.try_collect::<Vec<_>>().await.expect("shards read") {
                for row in 0..batch.num_rows() {
                    let ordinal = u32::try_from(rows.len()).expect("few rows");
                    let id = match shard.row_ids {
                        RowIds::From(first) => RowId(first.0 + u64::from(ordinal)),
                        _ => RowId(batch.column(3).as_primitive::<Int64Type>().value(row).cast_unsigned()),
                    };
                    let (number, values) = decode_batch_row(&batch, row);
                    let place = RowPosition::Shard { shard: shard.id, ordinal };
                    rows.push(LocatedRow { id, location: place, number, row: values });
                }
            }
        }
        let rows = Arc::new(rows);
        self.shards.lock().insert(shard.id, Arc::clone(&rows));
        rows
    }
}

/// Scans states as statements do.
#[derive(Debug)]
pub(super) struct Scanner {
    session: SessionState,
}

impl Scanner {
    pub(super) fn new(execution: &Execution) -> Self {
        let config = SessionConfig::new().with_target_partitions(execution.executor().default_partitions());
        Self {
            session: SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(execution.executor().runtime())
                .build(),
        }
    }

    /// Returns all rows of a state with their locations.
    pub(super) async fn scan(
        &self,
        execution: &Execution,
        table: &Arc<Table>,
        rows: &Arc<TableRows>,
    ) -> SqlResult<Vec<LocatedRow>> {
        let planner = execution.scan_planner();
        let source = ShardTable::new(Arc::clone(table), Arc::clone(rows), Arc::clone(&planner)).with_row_positions();
        let operators = planner.plan_scan(&source, None, &[], None, &self.session).map_err(from_datafusion)?;
        let batches = collect(operators, self.session.task_ctx()).await.map_err(from_datafusion)?;
        let mut seen = Vec::new();
        for batch in &batches {
            let column = |position: usize| batch.column(position).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let (number, values) = decode_batch_row(batch, row);
                let id = RowId(column(3).value(row).cast_unsigned());
                seen.push(LocatedRow { id, location: decode_place(column(4).value(row), rows)?, number, row: values });
            }
        }
        Ok(seen)
    }
}

/// Returns the number and the values of a stored row.
pub(super) fn decode_tuple(tuple: &Tuple) -> (i64, Row) {
    let integer = |column| match tuple.get(ColumnId(column)) {
        Some(Value::Int(value)) => value,
        other => panic!("a row without an integer in column {column}: {other:?}"),
    };
    let key = i32::try_from(integer(2)).expect("keys are small");
    (integer(1), Row { key, version: integer(3) })
}

fn decode_batch_row(batch: &RecordBatch, row: usize) -> (i64, Row) {
    let long = |position: usize| batch.column(position).as_primitive::<Int64Type>().value(row);
    let key = batch.column(1).as_primitive::<Int32Type>().value(row);
    (long(0), Row { key, version: long(2) })
}

/// Returns the location as the number that scans of `rows` give.
pub(super) fn location_number(place: RowPosition, rows: &TableRows) -> i64 {
    match place {
        RowPosition::Fresh => UNFLUSHED_PLACE,
        RowPosition::Shard { shard, ordinal } => {
            let number = rows.shards.shards.position(shard).expect("a place is in a shard of the state");
            i64::try_from(number).expect("few shards") << 32 | i64::from(ordinal)
        }
    }
}
