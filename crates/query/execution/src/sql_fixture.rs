//! SQL over an in-memory warehouse, for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use binder::StatementPlan;
use bytes::Bytes;
use catalog::Role;
use executor::RunContext;
use futures::{StreamExt, TryStreamExt, stream};
use planner::Planner;
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use types::random::SeededRandom;
use types::{Oid, QueryId, SqlResult};

use crate::fixtures::{Warehouse, context};

/// Session in which every statement commits.
pub(crate) struct Sql {
    pub(crate) warehouse: Warehouse,
    planner: Planner,
    next_oid: Arc<AtomicU32>,
    pub(crate) settings: Settings,
}

impl Sql {
    pub(crate) fn new() -> Self {
        Self::on(Warehouse::new())
    }

    pub(crate) fn on(warehouse: Warehouse) -> Self {
        let execution = &warehouse.execution;
        let planner = Planner::new(
            execution.scan_planner(),
            operators::operator_planning(),
            execution.executor().runtime(),
            execution.executor().default_partitions(),
        );
        Self { planner, warehouse, next_oid: Arc::new(AtomicU32::new(30_000)), settings: Settings::default() }
    }

    pub(crate) fn plan(&self, sql: &str) -> SqlResult<StatementPlan> {
        let snapshot = Arc::clone(&self.warehouse.transactions.current().state);
        let role = Arc::clone(snapshot.role(Role::BOOTSTRAP).unwrap());
        let next_oid = Arc::clone(&self.next_oid);
        let statement = StatementContext {
            has_rows: true,
            commit: types::CommitTs(1),
            time_travel: Arc::new(session_context::NoTimeTravel),
            inputs: Arc::default(),
            arguments: Arc::default(),
            assignments: Arc::default(),
            sequences: Arc::new(session_context::NoSequenceNumbers),
            settings: Arc::new(self.settings.clone()),
            session_role: Arc::clone(&role),
            role,
            snapshot,
            database: "kiln".to_owned(),
            query_id: QueryId(1),
            statement_us: 1_800_000_000_000_000,
            transaction_us: 1_800_000_000_000_000,
            backend_pid: 1,
            new_oid: Arc::new(move || Oid(next_oid.fetch_add(1, Ordering::Relaxed))),
            activity: Arc::new(NoActivity),
            random: Arc::new(SeededRandom::new(1)),
            clock: Arc::new(types::SystemClock::new()),
        };
        let parsed = self.planner.parse(sql)?;
        self.planner.plan(&parsed[0], &[], &Arc::new(statement))
    }

    /// Runs one statement and returns its rows as text, with columns separated by `|`.
    pub(crate) async fn run(&self, sql: &str) -> SqlResult<Vec<String>> {
        let context = RunContext { settings: Arc::new(self.settings.clone()), ..context() };
        Box::pin(self.run_with(sql, &context)).await
    }

    /// Loads CSV lines into a new shard.
    pub(crate) async fn copy(&self, table: &str, csv: Bytes) {
        let StatementPlan::CopyFrom(plan) = self.plan(&format!("COPY {table} FROM STDIN (FORMAT csv)")).unwrap() else {
            panic!("COPY is planned as such")
        };
        let mut transaction = self.warehouse.begin();
        let lines = stream::iter([Ok(csv)]).boxed();
        let context = context();
        let copying = self.warehouse.execution.copier().copy_from(&plan, Some(lines), &mut transaction, &context);
        Box::pin(copying).await.unwrap();
        transaction.commit().await.unwrap();
        self.warehouse.execution.maintenance().flush(plan.table.oid).await.unwrap();
    }

    pub(crate) async fn run_with(&self, sql: &str, context: &RunContext) -> SqlResult<Vec<String>> {
        let execution = &self.warehouse.execution;
        let mut transaction = self.warehouse.begin();
        let rows = match self.plan(sql)? {
            StatementPlan::Query(query) => {
                let batches: Vec<RecordBatch> =
                    execution.executor().start_query(&query, context).await?.stream.try_collect().await?;
                batches.iter().flat_map(texts).collect()
            }
            StatementPlan::Write(write) => {
                vec![
                    crate::fixtures::written_rows(execution.dml().write(&write, &mut transaction, context).await?)
                        .to_string(),
                ]
            }
            StatementPlan::Modify(modify) => {
                vec![
                    crate::fixtures::written_rows(execution.dml().modify(&modify, &mut transaction, context).await?)
                        .to_string(),
                ]
            }
            StatementPlan::Define(define) => {
                transaction.stage(define.changes).unwrap();
                Vec::new()
            }
            StatementPlan::Explain(explain) => {
                crate::fixtures::unwrap_done(execution.explainer().explain(&explain, &mut transaction, context).await?)
            }
            other => panic!("{other:?} is not for these tests"),
        };
        transaction.commit().await.unwrap();
        Ok(rows)
    }
}

/// Returns the rows of a batch as text, with columns separated by `|`.
pub(crate) fn texts(batch: &RecordBatch) -> Vec<String> {
    let text = |row| {
        let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        cells.collect::<Vec<_>>().join("|")
    };
    (0..batch.num_rows()).map(text).collect()
}
