//! Tests of prepared plans: plans that are made once for all executions, and the rows that they read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use binder::StatementPlan;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use plan::ShardTable;
use session_context::{FetchedInputs, HistoricalState, StatementContext};
use types::{CommitTs, TimeTravelTarget};

use super::{ALL_PLANS_BYTES_MAX, PreparedPlan};
use crate::tests::fixture::Fixture;

const T: &str = "CREATE TABLE t (id int, name text, d date, n numeric(10,2)); CREATE VIEW v AS SELECT id FROM t WHERE id < 10; \
                 CREATE VIEW w AS SELECT 1 AS one";

fn prepared(fixture: &Fixture, sql: &str) -> Option<PreparedPlan> {
    let parsed = fixture.planner.parse(sql).expect("it is SQL").remove(0);
    let mut context = StatementContext::clone(&fixture.context);
    context.snapshot = Arc::new(context.snapshot.without_rows());
    // Earlier states are equal to the present one.
    let state = HistoricalState { state: Arc::clone(&context.snapshot), pin: Arc::new(()) };
    let moments = [TimeTravelTarget::Newest, TimeTravelTarget::Commit(CommitTs(1))];
    let states = moments.into_iter().map(|moment| (moment, Ok(state.clone()))).collect();
    context.inputs = Arc::new(FetchedInputs { states, ..FetchedInputs::default() });
    let planned: StatementPlan = fixture.planner.plan(&parsed, &[], &Arc::new(context)).expect("it can be planned");
    PreparedPlan::new(planned, &fixture.planner)
}

#[test]
fn plans_that_no_parameter_and_no_moment_decides_are_made_once() {
    let fixture = Fixture::of(T);
    for (sql, expected) in [
        ("SELECT id FROM t WHERE name = $1 AND d < $2 LIMIT $3", true),
        ("SELECT id FROM v WHERE id IN (SELECT id FROM t WHERE id > $1)", true),
        ("SELECT $1::text", true),
        ("SELECT id FROM t", false),
        ("SELECT v.id, $1::int FROM v AS OF SNAPSHOT 1", false),
        ("SELECT one, $1 FROM w AS OF SNAPSHOT $1", false),
        ("SELECT id FROM t WHERE id > $1 LIMIT floor(random() * 3)::int", false),
        ("SELECT id FROM t WHERE id > $1 LIMIT 2 + 1", true),
        // The digits of a value decide the plan.
        ("SELECT id FROM t WHERE n < $1", false),
        ("SELECT id + $1::numeric FROM t", false),
        // A value decides which snapshot is read.
        ("SELECT 1 FROM t AS OF SNAPSHOT $1", false),
        ("SELECT id FROM t WHERE d < 'today' AND id = $1", false),
        ("SELECT id FROM t WHERE d < current_date AND id = $1", false),
        ("SELECT relname FROM pg_class WHERE oid = $1", false),
        ("SELECT id FROM t WHERE id = $1 FOR UPDATE", false),
        ("DELETE FROM t WHERE id = $1", false),
    ] {
        assert_eq!(prepared(&fixture, sql).is_some(), expected, "{sql}");
    }
}

#[test]
fn each_execution_reads_the_rows_of_its_own_snapshot() {
    let fixture = Fixture::of(T);
    let plan = prepared(&fixture, "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE a.id > $1").expect("it is kept");
    let query =
        plan.with_rows_of(&fixture.context).and_then(|query| query.with_parameters(vec![ScalarValue::Int32(Some(1))]));
    let mut sources = Vec::new();
    let walked = query.expect("there is a value for each parameter").plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            sources.push(source_as_provider(&scan.source)?);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("all sources are tables");
    let [first, second] = sources.as_slice() else { panic!("two are read, not {}", sources.len()) };
    assert!(Arc::ptr_eq(first, second), "what is found out about the rows is found out once");
    let table = first.downcast_ref::<ShardTable>().expect("it is a table");
    assert!(Arc::ptr_eq(&table.rows, fixture.context.snapshot.rows(table.table.oid)));
}

#[test]
fn plans_have_bounded_memory_and_give_it_back() {
    let fixture = Fixture::of(T);
    let taken = || fixture.planner.prepared_bytes.load(Ordering::Relaxed);
    let first = prepared(&fixture, "SELECT id FROM t WHERE id = $1");
    let own = taken();
    assert!(first.is_some() && 0 < own);
    fixture.planner.prepared_bytes.store(ALL_PLANS_BYTES_MAX, Ordering::Relaxed);
    assert!(prepared(&fixture, "SELECT id FROM t WHERE id = $1").is_none());
    fixture.planner.prepared_bytes.store(own, Ordering::Relaxed);
    drop(first);
    assert_eq!(taken(), 0);
}
