use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::MemTable;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use optimizer::OptimizedPlan;
use optimizer::common_subplans::{MaterializeClause, WithQuery, WithQueryReference, optimize};
use tokio_util::sync::CancellationToken;

use super::SharedScanExec;
use crate::OperatorPlanner;
use crate::plan_query::plan_run;

/// Creates the table `a(x)` with the values 1 to 4, read by three threads.
fn state() -> SessionState {
    let mut config = SessionConfig::new().with_target_partitions(3);
    // Like the sessions of statements.
    config.options_mut().sql_parser.enable_subquery_sort_elimination = false;
    let context = SessionContext::new_with_config(config);
    let numbers = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let batch = RecordBatch::try_from_iter([("x", numbers as _)]).expect("one column");
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).expect("it has the schema");
    context.register_table("a", Arc::new(table)).expect("the name is free");
    SessionStateBuilder::new_from_existing(context.state()).with_query_planner(Arc::new(OperatorPlanner)).build()
}

/// Plans two readers of a WITH query that is AS MATERIALIZED.
async fn read_twice(state: &SessionState, query: &str) -> OptimizedPlan {
    let sql = format!("SELECT x FROM ({query}) AS w UNION ALL SELECT x + 10 FROM ({query}) AS w WHERE x > 2");
    let plan = state.create_logical_plan(&sql).await.expect("it is a query");
    let with_query = Arc::new(WithQuery { name: "w".to_owned(), clause: MaterializeClause::Materialized });
    let plan = plan.transform_up(|node| {
        Ok(match node {
            LogicalPlan::SubqueryAlias(_) => {
                Transformed::yes(WithQueryReference::into_plan(Arc::clone(&with_query), node))
            }
            node => Transformed::no(node),
        })
    });
    let plan = plan.expect("the visitor returns no error").data;
    optimize(plan, state, &Ok).expect("it can be optimized")
}

fn scans(operators: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn ExecutionPlan>> {
    if operators.is::<SharedScanExec>() {
        return vec![Arc::clone(operators)];
    }
    operators.children().into_iter().flat_map(scans).collect()
}

#[tokio::test]
async fn readers_of_a_run_share_the_rows_and_each_run_has_its_own() {
    let (state, stop) = (state(), CancellationToken::new());
    let optimized = read_twice(&state, "SELECT x FROM a").await;
    assert_eq!(optimized.shared().len(), 1);
    let mut rows_of_runs = Vec::new();
    for _ in 0..2 {
        let operators = plan_run(&optimized, &state, &stop).await.expect("it has operators");
        let found = scans(&operators);
        let [one, other] = found.as_slice() else { panic!("{} scans", found.len()) };
        let rows = |scan: &Arc<dyn ExecutionPlan>| {
            Arc::clone(scan.downcast_ref::<SharedScanExec>().expect("it is a shared scan").rows())
        };
        assert!(Arc::ptr_eq(&rows(one), &rows(other)));
        rows_of_runs.push(rows(one));
        let batches = collect(operators, state.task_ctx()).await.expect("it has rows");
        let columns = batches.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
        let mut values = columns.collect::<Vec<_>>().concat();
        values.sort_unstable();
        assert_eq!(values, [1, 2, 3, 4, 13, 14]);
    }
    assert!(!Arc::ptr_eq(&rows_of_runs[0], &rows_of_runs[1]));
}

#[tokio::test]
async fn ordered_shared_rows_are_read_by_one_partition() {
    let (state, stop) = (state(), CancellationToken::new());
    for (query, partitions) in [("SELECT x FROM a", 3), ("SELECT x FROM a ORDER BY x DESC", 1)] {
        let optimized = read_twice(&state, query).await;
        let operators = plan_run(&optimized, &state, &stop).await.expect("it has operators");
        for scan in scans(&operators) {
            assert_eq!(scan.output_partitioning().partition_count(), partitions, "{query}");
        }
    }
}

#[tokio::test]
async fn shared_rows_need_a_run() {
    let state = state();
    let optimized = read_twice(&state, "SELECT x FROM a").await;
    let error = state.query_planner().create_physical_plan(optimized.plan(), &state).await.expect_err("outside");
    assert!(error.to_string().contains("is read outside of a run"), "{error}");
}
