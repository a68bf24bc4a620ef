//! Test fixtures: small tables with statistics, and queries over them with and without Kiln's rules.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use catalog::{CatalogState, Change, Column, Distribution, Role, Sample, Table, TableOrder};
use datafusion::catalog::Session;
use datafusion::common::Result as DfResult;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::config::SessionConfig;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use plan::{ShardTable, TableScanPlanner, schema_of};
use shards::{ColumnStats, Datum, Hll, RowGroupMeta, ShardMeta};
use types::{ColumnId, Oid, ShardId, SqlType};
use xxhash_rust::xxh3::xxh3_64;

/// Columns of a table of integers: name and values of each.
pub(crate) type TableColumns = Vec<(&'static str, Vec<Option<i32>>)>;

/// Catalog of tables with their rows in memory.
#[derive(Debug)]
pub(crate) struct Warehouse {
    state: CatalogState,
    scan: Arc<MemoryScan>,
}

#[derive(Debug, Default)]
struct MemoryScan(HashMap<Oid, RecordBatch>);

impl TableScanPlanner for MemoryScan {
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
        _: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = self.0[&table.table.oid].clone();
        let exec =
            MemorySourceConfig::try_new_exec(&[vec![rows]], schema_of(&table.table.columns), projection.cloned())?;
        Ok(exec)
    }
}

impl Warehouse {
    pub(crate) fn new(tables: &[(&str, TableColumns)]) -> Warehouse {
        let mut state = CatalogState::new_warehouse();
        let mut scan = MemoryScan::default();
        for (oid, (name, rows)) in (20_000..).map(Oid).zip(tables) {
            let table = table(oid, name, rows);
            let batch = batch(rows, |index| rows[index].0.to_owned());
            let shard = shard(rows, &batch);
            let sampled = batch_sample(rows);
            state = state.apply(&Change::PutTable(Arc::new(table))).unwrap();
            let shards = vec![Arc::new(shard)];
            state = state.apply(&Change::AddShards { table: oid, shards, sample: Some(Arc::new(sampled)) }).unwrap();
            scan.0.insert(oid, batch);
        }
        Warehouse { state, scan: Arc::new(scan) }
    }

    /// Creates a session in which the tables are registered, with Kiln's rules or without.
    pub(crate) fn session(&self, is_on: bool) -> SessionContext {
        let config = crate::configure(SessionConfig::new().with_target_partitions(2), is_on);
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_optimizer_rules(crate::rules(is_on))
            .build();
        let session = SessionContext::new_with_state(state);
        for table in self.state.tables() {
            let rows = Arc::clone(self.state.rows(table.oid));
            let scan: Arc<dyn TableScanPlanner> = Arc::<MemoryScan>::clone(&self.scan);
            let provider = ShardTable::new(Arc::clone(table), rows, scan);
            session.register_table(table.name.as_str(), Arc::new(provider)).unwrap();
        }
        session
    }

    /// Returns the optimized plan of a query.
    pub(crate) async fn plan(&self, sql: &str, is_on: bool) -> LogicalPlan {
        let state = self.session(is_on).state();
        let plan = state.create_logical_plan(sql).await.unwrap();
        state.optimize(&plan).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Runs a query; returns its rows as text, sorted.
    pub(crate) async fn rows(&self, sql: &str, is_on: bool) -> Vec<String> {
        let session = self.session(is_on);
        let state = session.state();
        let plan = state.create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let physical = state.create_physical_plan(&plan).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let batches = collect(physical, session.task_ctx()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let mut rows: Vec<String> = batches.iter().flat_map(texts).collect();
        rows.sort();
        rows
    }
}

pub(crate) fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<ArrayFormatter<'_>> =
        batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    let row = |row| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

fn table(oid: Oid, name: &str, rows: &TableColumns) -> Table {
    let columns = (1..).zip(rows).map(|(id, (name, _))| Column {
        id: ColumnId(id),
        name: (*name).to_owned(),
        sql_type: SqlType::Int4,
        not_null: false,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    });
    Table {
        oid,
        schema: catalog::Schema::PUBLIC,
        name: name.to_owned(),
        owner: Role::BOOTSTRAP,
        columns: columns.collect(),
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 100,
        storage: catalog::Storage::default(),
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    }
}

fn batch(rows: &TableColumns, name: impl Fn(usize) -> String) -> RecordBatch {
    let fields: Vec<Field> = (0..rows.len()).map(|index| SqlType::Int4.arrow_field(&name(index), true)).collect();
    let columns = rows.iter().map(|(_, values)| Arc::new(Int32Array::from(values.clone())) as ArrayRef).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn batch_sample(rows: &TableColumns) -> Sample {
    let batch = batch(rows, |index| (index + 1).to_string());
    let mut writer = StreamWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    writer.write(&batch).unwrap();
    let ipc = writer.into_inner().unwrap().into();
    Sample::new(batch.num_rows() as u64, batch.num_rows() as u64, ipc)
}

fn shard(rows: &TableColumns, batch: &RecordBatch) -> ShardMeta {
    let count = batch.num_rows() as u64;
    let columns = (1..).zip(rows).map(|(id, (_, values))| {
        let known = || values.iter().flatten().map(|value| i64::from(*value));
        let mut distinct = Hll::default();
        known().for_each(|value| distinct.add_hash(xxh3_64(&value.to_le_bytes())));
        let is_ascending = values.is_sorted_by(|a, b| a.is_some() && a < b);
        ColumnStats {
            column: ColumnId(id),
            nulls_guessed: false,
            nulls: values.iter().filter(|value| value.is_none()).count() as u64,
            min: known().min().map(Datum::Int),
            max: known().max().map(Datum::Int),
            bounds_exact: true,
            distinct,
            ascending: is_ascending,
            strictly_ascending: is_ascending,
            average_run: 1.0,
            heavy_hitters: Vec::new(),
            bytes: count * 4,
        }
    });
    ShardMeta {
        id: ShardId(uuid::Uuid::from_u128(7)),
        object: "tables/7/7.parquet".to_owned(),
        rows: count,
        bytes: count * 10,
        tail_bytes: 8,
        tail_checksum: 7,
        columns: columns.collect(),
        row_groups: vec![RowGroupMeta { rows: count, bytes: count * 10 }],
        row_ids: shards::RowIds::None,
        buckets: None,
    }
}
