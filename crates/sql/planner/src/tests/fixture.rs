//! Fixture: a planner over a catalog whose tables are never read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use binder::StatementPlan;
use catalog::{CatalogState, Role};
use datafusion::catalog::Session;
use datafusion::common::Result as DfResult;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use plan::{OperatorPlanning, ShardTable, TableScanPlanner};
use session_context::{NoActivity, StatementContext};
use settings::Settings;
use types::random::SeededRandom;
use types::{Oid, QueryId, SqlResult};

use crate::Planner;

/// Planner with the catalog that some definitions created.
pub(crate) struct Fixture {
    pub(crate) planner: Planner,
    pub(crate) context: Arc<StatementContext>,
}

impl Fixture {
    pub(crate) fn of(definitions: &str) -> Self {
        let planner = planner_without_rows();
        let fresh = Arc::new(CatalogState::new_warehouse());
        let role = Arc::clone(fresh.role(Role::BOOTSTRAP).expect("the fixture is sound"));
        let next = AtomicU32::new(30_000);
        let mut context = StatementContext {
            has_rows: true,
            commit: types::CommitTs(1),
            time_travel: Arc::new(session_context::NoTimeTravel),
            inputs: Arc::default(),
            arguments: Arc::default(),
            assignments: Arc::default(),
            sequences: Arc::new(session_context::NoSequenceNumbers),
            settings: Arc::new(Settings::default()),
            session_role: Arc::clone(&role),
            role,
            snapshot: fresh,
            database: "kiln".to_owned(),
            query_id: QueryId(1),
            statement_us: 1_800_000_000_000_000,
            transaction_us: 1_800_000_000_000_000,
            backend_pid: 4_242,
            new_oid: Arc::new(move || Oid(next.fetch_add(1, Ordering::Relaxed))),
            activity: Arc::new(NoActivity),
            random: Arc::new(SeededRandom::new(1)),
            clock: Arc::new(types::SystemClock::new()),
        };
        for parsed in planner.parse(definitions).expect("the fixture is sound") {
            let StatementPlan::Define(plan) =
                planner.plan(&parsed, &[], &Arc::new(context.clone())).expect("the fixture is sound")
            else {
                panic!("{} defines nothing", parsed.text);
            };
            for change in &plan.changes {
                context.snapshot = Arc::new(context.snapshot.apply(change).expect("the fixture is sound"));
            }
        }
        Self { planner, context: Arc::new(context) }
    }

    pub(crate) fn plan(&self, sql: &str) -> SqlResult<StatementPlan> {
        self.planner.plan(&self.planner.parse(sql)?[0], &[], &self.context)
    }
}

/// Creates a planner whose plans are only inspected, never run.
pub(crate) fn planner_without_rows() -> Planner {
    let operators = OperatorPlanning { planner: Arc::new(NoOperators), rules: |_| Vec::new() };
    Planner::new(Arc::new(NoScans), operators, Arc::default(), 2)
}

#[derive(Debug)]
struct NoOperators;

#[async_trait]
impl QueryPlanner for NoOperators {
    async fn create_physical_plan(&self, _: &LogicalPlan, _: &dyn Session) -> DfResult<Arc<dyn ExecutionPlan>> {
        unreachable!("no plan is run")
    }
}

#[derive(Debug)]
struct NoScans;

impl TableScanPlanner for NoScans {
    fn plan_scan(
        &self,
        _: &ShardTable,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
        _: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        unreachable!("no table is read")
    }
}
