//! Tests of the plan codec: plans survive a round trip, and malformed bytes are rejected.

mod lossless;
mod message;
mod queries;

use std::sync::Arc;

use arrow::array::Array;
use arrow::datatypes::Schema;
use binder::StatementPlan;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use exchange::codec::{Codec, Converter, checksummed_record};
use functions::function_codec::SerializedScalar;
use operators::{Threading, plan_operators};
use plan::cancellation::unwrap_condition;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rowstore::sample_values::all_samples;
use scan::{FragmentCache, PortableScan, ScanPlanner, block_cache};
use scheduler::ResourceConfig;
use tokio_util::sync::CancellationToken;
use types::sample_values::all_types;
use types::stack_limit::with_planning_stack;

use crate::sql_fixture::Sql;

/// Encodes a plan.
fn encode(plan: &Arc<dyn ExecutionPlan>) -> Vec<u8> {
    let write =
        || physical_plan_to_bytes_with_proto_converter(Arc::clone(plan), &Codec::encoder(), &Converter::default());
    with_planning_stack(write).expect("every operator has a form").to_vec()
}

fn decode(sql: &Sql, bytes: &[u8]) -> datafusion::common::Result<Arc<dyn ExecutionPlan>> {
    // Another process has an empty cache.
    let blocks = Arc::new(block_cache(&ResourceConfig::default()).unwrap());
    let fragments = Arc::new(FragmentCache::new(0));
    let scans = ScanPlanner::new(sql.warehouse.objects.clone(), Arc::default(), blocks, fragments);
    let codec = Codec::decoder(Arc::new(scans));
    let context = SessionStateBuilder::new().with_default_features().build().task_ctx();
    with_planning_stack(|| {
        physical_plan_from_bytes_with_proto_converter(bytes, &context, &codec, &Converter::default())
    })
}

/// Returns the display of a plan, without expression ids.
fn display(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

/// Asserts that a plan is the same after encoding and decoding.
pub(super) fn round_trip(sql: &Sql, plan: &Arc<dyn ExecutionPlan>) {
    let again = decode(sql, &encode(plan)).unwrap_or_else(|error| panic!("{error}\n{}", display(plan)));
    assert_eq!(display(&again), display(plan));
    let (before, after) = (expressions(plan), expressions(&again));
    assert_eq!(before.len(), after.len(), "{}", display(plan));
    before.iter().zip(&after).for_each(|(before, after)| assert!(is_same(before, after), "{before} is {after}"));
}

fn expressions(plan: &Arc<dyn ExecutionPlan>) -> Vec<Arc<dyn PhysicalExpr>> {
    let mut all = Vec::new();
    plan.apply(|operator| {
        operator.apply_expressions(&mut |expression| {
            all.push(Arc::clone(expression));
            Ok(TreeNodeRecursion::Continue)
        })
    })
    .unwrap();
    all
}

/// Returns whether two expressions compute the same; whether a condition is measured does not matter.
fn is_same(before: &Arc<dyn PhysicalExpr>, after: &Arc<dyn PhysicalExpr>) -> bool {
    let before = unwrap_condition(before);
    let functions = before.downcast_ref::<ScalarFunctionExpr>().zip(after.downcast_ref::<ScalarFunctionExpr>());
    if let Some((before, after)) = functions
        && (SerializedScalar::encode(before.fun()) != SerializedScalar::encode(after.fun())
            || before.return_type() != after.return_type())
    {
        return false;
    }
    let (below, other) = (before.children(), after.children());
    before.to_string() == after.to_string()
        && below.len() == other.len()
        && below.into_iter().zip(other).all(|(before, after)| is_same(before, after))
}

async fn plan(sql: &Sql, query: &str) -> Arc<dyn ExecutionPlan> {
    let StatementPlan::Query(plan) = sql.plan(query).unwrap() else { panic!("{query} is no query") };
    let stop = CancellationToken::new();
    let optimized = plan.optimized(&stop).await.unwrap();
    plan_operators(&plan, &optimized, Threading::Multiple, &stop).await.expect("it has operators")
}

async fn table() -> Sql {
    let sql = Sql::new();
    sql.run("create table t (a bigint, b text, c numeric(9,2), at timestamptz, i interval)").await.unwrap();
    for shard in 0..3 {
        let row = |i: i64| format!("{i},b{i},{i},2024-01-01 00:00:00+00,{i} days\n");
        sql.copy("t", (shard * 100..shard * 100 + 100).map(row).collect::<String>().into()).await;
    }
    sql.run("insert into t (a, b) values (1001, 'fresh'), (1002, null)").await.unwrap();
    sql.run("delete from t where a % 10 = 3").await.unwrap();
    sql
}

#[tokio::test]
async fn operators_and_functions_of_kilns_own_come_back() {
    let sql = table().await;
    for query in [
        "select a, generate_series(1, a) from t where b like 'b1%' and a between 3 and 9",
        "select * from (select a, rank() over (partition by b order by c) as r from t) s where r <= 3",
        "select upper(b), a::text, c + 1, at + interval '1 month', date_trunc('month', at) from t",
        "select sum(c), avg(a), min(i), max(b), stddev(a), string_agg(b, ',' order by a), count(distinct b) from t",
        "select a, lag(b) over (order by a), ntile(4) over (order by a), sum(a) over (order by a rows 3 preceding) from t",
        "select greatest(i, interval '1 hour'), i < interval '2 days', i = any(array[i]) from t",
        "select t.a from t join t u on t.a = u.a and t.c < u.c + 1",
        "select b, c, count(*) from t group by grouping sets ((b), (c), ())",
    ] {
        round_trip(&sql, &plan(&sql, query).await);
    }
}

#[tokio::test]
async fn literals_of_every_type_come_back() {
    let sql = Sql::new();
    for sql_type in all_types() {
        let column = all_samples(&sql_type);
        let literal = |row| {
            let value = ScalarValue::try_from_array(&column, row).expect("the row is one of the column");
            (Arc::new(Literal::new(value)) as Arc<dyn PhysicalExpr>, format!("value{row}"))
        };
        let literals: Vec<_> = (0..column.len()).map(literal).collect();
        let row = Arc::new(PlaceholderRowExec::new(Arc::new(Schema::empty())));
        let plan: Arc<dyn ExecutionPlan> =
            Arc::new(ProjectionExec::try_new(literals, row).expect("literals need no column"));
        let again = decode(&sql, &encode(&plan)).unwrap_or_else(|error| panic!("{sql_type}: {error}"));
        let values = |plan: &Arc<dyn ExecutionPlan>| -> Vec<ScalarValue> {
            let literals = expressions(plan).into_iter();
            literals.map(|it| it.downcast_ref::<Literal>().expect("it was a literal").value().clone()).collect()
        };
        assert_eq!(values(&again), values(&plan), "{sql_type}");
        assert_eq!(again.schema(), plan.schema(), "{sql_type}");
    }
}

#[tokio::test]
async fn what_is_nested_deeply_comes_back() {
    let sql = table().await;
    let nested = |open: &str, core: &str, close: &str| open.repeat(150) + core + &close.repeat(150);
    for query in [
        format!("select {} from t", nested("upper(", "b", ")")),
        format!("select {} from t", nested("abs(1 + ", "a", ")")),
        format!("select a from t where {}", nested("case when a > 7 then ", "a % 2 = 0", " else a < 3 end")),
        format!("select sum({}) over (order by a) from t", nested("abs(", "a", ")")),
        nested("select a, count(*) from (", "select a from t", ") q group by a"),
        nested("select * from (", "select a from t", ") q where a is not null order by a limit 9"),
    ] {
        let plan = plan(&sql, &query).await;
        with_planning_stack(|| round_trip(&sql, &plan));
    }
}

#[tokio::test]
async fn what_was_cut_off_or_changed_is_refused_and_never_crashes() {
    let sql = table().await;
    let plan = plan(&sql, "select b, sum(c) from t where a < 77 and b like 'b%' group by b order by 2 limit 3").await;
    let bytes = encode(&plan);
    assert!(decode(&sql, &bytes).is_ok());
    let cut = (0..bytes.len()).step_by(7);
    cut.for_each(|end| drop(decode(&sql, &bytes[..end])));
    let mut runner = TestRunner::new(ProptestConfig { cases: 400, ..ProptestConfig::default() });
    let changes = proptest::collection::vec((0..bytes.len(), any::<u8>()), 1..4);
    let ran = runner.run(&changes, |changes| {
        let mut bytes = bytes.clone();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        // The plan may decode to another literal, but must not panic.
        drop(decode(&sql, &bytes));
        Ok(())
    });
    ran.unwrap();
}

#[tokio::test]
async fn forms_whose_checksum_nobody_checks_are_refused_too() {
    let sql = table().await;
    let operators = plan(&sql, "select a, b from t where a < 77").await;
    let mut scan = &operators;
    while let Some(below) = scan.children().first() {
        scan = below;
    }
    let scan = scan.downcast_ref::<scan::ShardScanExec>().unwrap();
    let bytes = rmp_serde::to_vec_named(&scan.to_portable().unwrap()).unwrap();
    let execution = &sql.warehouse.execution;
    let scans = execution.scans();
    let made = |bytes: &[u8]| {
        let form = checksummed_record::read_unchecked::<PortableScan>(bytes).ok()?;
        scan::ShardScanExec::try_from_portable(form, scans, Vec::new()).ok()
    };
    assert!(made(&bytes).is_some());
    let mut runner = TestRunner::new(ProptestConfig { cases: 2_000, ..ProptestConfig::default() });
    let changes = proptest::collection::vec((0..bytes.len(), any::<u8>()), 1..4);
    let ran = runner.run(&changes, |changes| {
        let mut bytes = bytes.clone();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        drop(made(&bytes));
        Ok(())
    });
    ran.unwrap();
}
