//! In-memory warehouse for tests.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use binder::{OutputColumn, QueryPlan, WritePlan};
use catalog::{Change, Column, Distribution, Role, Schema, Table, TableOrder};
use datafusion::datasource::provider_as_source;
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use executor::RunContext;
use functions::error::to_datafusion;
use futures::stream;
use kv::sim::SimDisk;
use objects::Objects;
use plan::{StreamTable, schema_of};
use scheduler::ResourceConfig;
use settings::Settings;
use shards::{ShardMeta, ShardReader};
use tokio_util::sync::CancellationToken;
use txn::{Isolation, Transaction, Transactions};
use types::{Clock, ColumnId, ObjectNames, Oid, QueryId, Random, SqlResult, SqlType, SystemClock, SystemRandom};

use crate::Execution;

/// Services that reads and writes need.
pub(crate) struct Warehouse {
    pub(crate) objects: Objects,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) execution: Arc<Execution>,
    _spill: tempfile::TempDir,
}

/// Id of the single table of a test.
pub(crate) const TABLE: Oid = Oid(20_000);

impl Warehouse {
    pub(crate) fn new() -> Self {
        Self::with_config(ResourceConfig::default())
    }

    /// Returns a warehouse with `config`, but two threads and its own spill folder.
    pub(crate) fn with_config(config: ResourceConfig) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let random: Arc<dyn Random> = Arc::new(SystemRandom);
        let objects = Objects::open("memory:///", Arc::clone(&clock), Arc::clone(&random)).unwrap();
        let kv = Arc::new(SimDisk::new(1).open().unwrap());
        let transactions = Transactions::open(kv, objects.clone(), Arc::clone(&clock)).unwrap();
        let spill = tempfile::tempdir().unwrap();
        let config = ResourceConfig { spill_folder: spill.path().join("spill"), threads: 2, ..config };
        let execution = Execution::new(objects.clone(), Arc::clone(&transactions), clock, random, config).unwrap();
        Self { objects, transactions, execution, _spill: spill }
    }

    pub(crate) fn begin(&self) -> Transaction {
        self.transactions.begin(Isolation::ReadCommitted)
    }

    /// Creates a table and commits.
    pub(crate) async fn create(&self, table: &Arc<Table>) {
        let mut transaction = self.begin();
        transaction.stage(vec![Change::PutTable(Arc::clone(table))]).unwrap();
        transaction.commit().await.unwrap();
    }

    /// Writes `partitions` to the table and commits; returns the number of rows.
    pub(crate) async fn load(&self, table: &Arc<Table>, partitions: Vec<Vec<RecordBatch>>) -> SqlResult<u64> {
        let mut transaction = self.begin();
        let partitions = partitions.into_iter().map(|batches| batches.into_iter().map(Ok).collect()).collect();
        let rows = self.execution.dml().write(&write_plan(table, partitions), &mut transaction, &context()).await?;
        transaction.commit().await.unwrap();
        Ok(written_rows(rows))
    }

    /// Returns the committed shards of the table.
    pub(crate) fn shards(&self) -> Vec<Arc<ShardMeta>> {
        self.transactions.current().state.shards(TABLE).shards.iter().collect()
    }

    /// Returns the rows of a shard.
    pub(crate) async fn rows(&self, table: &Table, shard: &Arc<ShardMeta>) -> RecordBatch {
        let columns: Arc<[_]> = scan::column_defs(table).into();
        let reader = ShardReader::open(&self.objects, shard).await.unwrap();
        let mut batches = Vec::new();
        for row_group in 0..shard.row_groups.len() {
            let read = shards::RowGroupRead {
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
            let rows = reader.read(&read).unwrap();
            batches.extend(futures::TryStreamExt::try_collect::<Vec<_>>(rows.batches).await.unwrap());
        }
        arrow::compute::concat_batches(&ShardReader::schema(&columns), &batches).unwrap()
    }
}

/// Returns the definition of `t (a int, b text)`.
pub(crate) fn table(order: TableOrder) -> Arc<Table> {
    let column = |id, name: &str, sql_type, not_null| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        not_null,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    Arc::new(Table {
        oid: TABLE,
        schema: Schema::PUBLIC,
        name: "t".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![column(1, "a", SqlType::Int4, true), column(2, "b", SqlType::Text, false)],
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order,
        comment: None,
        next_column: 3,
        storage: catalog::Storage::Column,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: types::CachePolicy::default(),
        external: None,
    })
}

/// Returns rows of `t` in which `b` is the text of `a`.
pub(crate) fn batch(values: impl IntoIterator<Item = i32>) -> RecordBatch {
    let a = Int32Array::from_iter_values(values);
    let b: StringViewArray = a.iter().map(|value| value.map(|value| value.to_string())).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(a), Arc::new(b)];
    RecordBatch::try_new(schema_of(&table(TableOrder::None).columns), columns).unwrap()
}

/// Returns the values of `a`.
pub(crate) fn values(batch: &RecordBatch) -> Vec<i32> {
    let column = batch.column(0).as_any().downcast_ref::<Int32Array>().unwrap();
    column.values().to_vec()
}

/// Returns a plan that writes the given rows.
pub(crate) fn write_plan(table: &Arc<Table>, partitions: Vec<Vec<SqlResult<RecordBatch>>>) -> WritePlan {
    let (input, query) = fed_query(table);
    let schema = schema_of(&table.columns);
    let streams = partitions.into_iter().map(|batches| {
        let batches = stream::iter(batches.into_iter().map(|batch| batch.map_err(to_datafusion)));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), batches)) as SendableRecordBatchStream
    });
    let query = query.with_input_streams(&input, streams.collect());
    WritePlan {
        table: Arc::clone(table),
        changes_before: Vec::new(),
        input: Some(query),
        command_tag: "INSERT",
        notices: Vec::new(),
        returning: None,
        conflict: None,
    }
}

/// Returns a table that is fed from a stream, and the query that reads it.
pub(crate) fn fed_query(table: &Table) -> (Arc<StreamTable>, QueryPlan) {
    let input = StreamTable::new(schema_of(&table.columns));
    let plan = LogicalPlanBuilder::scan("copy", provider_as_source(Arc::clone(&input) as _), None).unwrap();
    let output = |column: &Column| OutputColumn {
        name: column.name.clone(),
        sql_type: column.sql_type.clone(),
        table: None,
        column: None,
    };
    let query = QueryPlan {
        plan: plan.build().unwrap(),
        columns: table.columns.iter().map(output).collect(),
        parameters: Vec::new(),
        state: Arc::new(state()),
        locks: Vec::new(),
        locked_limit: binder::OuterLimit::default(),
        depends_on_time: false,
        optimized: binder::OptimizedPlanCache::default(),
        planning_timings: binder::PlanningTimings::default(),
    };
    (input, query)
}

fn state() -> SessionState {
    SessionStateBuilder::new().with_default_features().build()
}

pub(crate) fn context() -> RunContext {
    RunContext {
        query_id: QueryId(1),
        cancel: CancellationToken::new(),
        settings: Arc::new(Settings::default()),
        names: Arc::new(Numbered),
        progress: Arc::default(),
        thread_share: Arc::default(),
        first_plan: Arc::default(),
        memory: Arc::default(),
        lease: None,
        distribution: None,
    }
}

/// Catalog that shows object 7 of type `regclass` as `regclass 7`.
#[derive(Debug)]
struct Numbered;

impl ObjectNames for Numbered {
    fn format(&self, sql_type: &SqlType, oid: u32) -> String {
        format!("{sql_type} {oid}")
    }
}

/// Returns the number of rows of a write that had no conflict.
pub(crate) fn written_rows(attempt: row_locks::AttemptOutcome<dml::ModifyOutcome>) -> u64 {
    unwrap_done(attempt).rows
}

/// Returns the result of a statement that had no conflict.
pub(crate) fn unwrap_done<T>(attempt: row_locks::AttemptOutcome<T>) -> T {
    match attempt {
        row_locks::AttemptOutcome::Done(done) => done,
        row_locks::AttemptOutcome::Conflict => panic!("nobody else is there"),
    }
}
