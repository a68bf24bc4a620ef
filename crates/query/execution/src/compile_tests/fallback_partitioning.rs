//! Tests of the partitioning of operators that are not compiled.

use std::sync::Arc;

use binder::StatementPlan;
use compile::FragmentExec;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use operators::SharedScanExec;
use scan::ShardScanExec;
use scheduler::ResourceConfig;

use crate::fixtures::{Warehouse, context};
use crate::sql_fixture::Sql;

/// Queries that are never compiled completely, because `string_agg` is not.
const QUERIES: [&str; 7] = [
    "select k, string_agg(s, ',') from t group by k",
    // Below fragments.
    "select k, string_agg(s, ',') from t group by k order by k",
    "select t.n, x from t join (select k, string_agg(s, ',') as x from t group by k) as q on q.k = t.n",
    "with q as materialized (select k, string_agg(s, ',') as x from t group by k) select a.k, b.x from q as a join q as b on a.k = b.k + 1 order by 1",
    "select k, max(x) from (select k, string_agg(s, ',') as x from t group by k order by k) as q group by k",
    "select k, n, string_agg(s, ',') from t group by rollup (k, n)",
    "select k, string_agg(s, ',') from (select k, s from t union all select n, s from t) as u group by k",
];

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_leave_has_a_partition_for_each_thread() {
    let sql = Sql::on(Warehouse::with_config(ResourceConfig { threads: 4, ..ResourceConfig::default() }));
    sql.run("create table t (k bigint, n bigint, s text)").await.expect("it is new");
    for shard in 0..8 {
        let row = |i: i64| format!("{},{},t{i}\n", i % 97, i % 13);
        sql.copy("t", (shard * 3_000..shard * 3_000 + 3_000).map(row).collect::<String>().into()).await;
    }
    for query in QUERIES {
        let Ok(StatementPlan::Query(plan)) = sql.plan(query) else { panic!("{query} has no plan") };
        let (about, task) = (context(), context().task_context(&plan.state));
        let mut seen = OperatorCounts::default();
        let prepared = executor::prepare_local(&plan, None, &about, task, None).await.expect("it can be planned");
        seen.count(&prepared.operators);
        assert!(0 < seen.scans && seen.scans_of_one == 0 && seen.groups_of_one == 0, "{query}: {seen:?}");
    }
}

/// Operators outside of fragments.
#[derive(Debug, Default)]
struct OperatorCounts {
    scans: usize,
    scans_of_one: usize,
    /// Aggregations that are finished in one partition.
    groups_of_one: usize,
}

impl OperatorCounts {
    fn count(&mut self, operator: &Arc<dyn ExecutionPlan>) {
        if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
            return fragment.operator_inputs().for_each(|(_, input)| self.count(input));
        }
        if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
            return self.count(shared.rows().operators());
        }
        if operator.is::<ShardScanExec>() {
            self.scans += 1;
            self.scans_of_one += usize::from(operator.output_partitioning().partition_count() == 1);
        }
        if let Some(aggregate) = operator.downcast_ref::<AggregateExec>() {
            let is_of_one = matches!(aggregate.mode(), AggregateMode::Final | AggregateMode::Single);
            self.groups_of_one += usize::from(is_of_one && !aggregate.group_expr().is_empty());
        }
        operator.children().into_iter().for_each(|child| self.count(child));
    }
}
