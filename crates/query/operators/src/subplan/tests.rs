use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use optimizer::correlated_subqueries::{CorrelatedSubqueryRule, array_subquery, lift};
use tokio_util::sync::CancellationToken;

use crate::OperatorPlanner;

/// Creates the tables `a(x, y)` with x from 1 to 4 and one NULL, and `b(x, z)` with some of these values, some of them
/// twice.
fn state() -> SessionState {
    let context = SessionContext::new();
    let table = |names: [&str; 2], rows: &[(Option<i64>, &str)]| {
        let numbers = rows.iter().map(|(x, _)| *x).collect::<arrow::array::Int64Array>();
        let texts = rows.iter().map(|(_, y)| Some(*y)).collect::<arrow::array::StringArray>();
        let columns: [(&str, arrow::array::ArrayRef); 2] = [(names[0], Arc::new(numbers)), (names[1], Arc::new(texts))];
        let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
        Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap())
    };
    let a = [(Some(1), "one"), (Some(2), "two"), (Some(3), "three"), (None, "none")];
    let b = [(Some(1), "p"), (Some(2), "q"), (Some(2), "r"), (None, "s")];
    context.register_table("a", table(["x", "y"], &a)).unwrap();
    context.register_table("b", table(["x", "z"], &b)).unwrap();
    context.register_udf(array_subquery().as_ref().clone());
    let base =
        SessionStateBuilder::new_from_existing(context.state()).with_query_planner(Arc::new(OperatorPlanner)).build();
    let rule = Arc::new(CorrelatedSubqueryRule::new(Arc::new(base.clone()), CancellationToken::new()));
    SessionStateBuilder::new_from_existing(base).with_analyzer_rule(rule).build()
}

/// Returns the rows of a query, one text per row.
async fn rows(sql: &str) -> Result<Vec<String>, String> {
    let state = state();
    let plan = state.create_logical_plan(sql).await.map_err(|error| error.to_string())?;
    let plan = state.optimize(&plan).map_err(|error| error.to_string())?;
    let plan = lift(&plan).map_err(|error| error.to_string())?;
    let physical = state.query_planner().create_physical_plan(&plan, &state).await;
    let physical = physical.map_err(|error| error.to_string())?;
    let batches = collect(physical, state.task_ctx()).await.map_err(|error| error.to_string())?;
    let table = pretty_format_batches(&batches).unwrap().to_string();
    let lines = table.lines().skip(3).filter(|line| !line.starts_with('+'));
    Ok(lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" ")).collect())
}

#[tokio::test]
async fn a_row_of_a_correlated_subquery_is_its_value_and_no_row_is_null() {
    let found = rows("SELECT y, (SELECT z FROM b WHERE b.x = a.x AND z <> 'r') AS z FROM a ORDER BY y").await.unwrap();
    assert_eq!(found, ["none ", "one p", "three ", "two q"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_counts_for_each_outer_row() {
    let sql = "SELECT y, (SELECT z FROM b WHERE b.x = a.x ORDER BY z DESC LIMIT 1) AS z FROM a ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), ["none ", "one p", "three ", "two r"]);
}

#[tokio::test]
async fn scalar_subquery_with_two_rows_fails() {
    let error = rows("SELECT (SELECT z FROM b WHERE b.x = a.x) FROM a").await.unwrap_err();
    assert!(error.contains("more than one row returned by a subquery used as an expression"), "{error}");
}

#[tokio::test]
async fn exists_and_in_give_booleans() {
    let sql = "SELECT y, EXISTS (SELECT 1 FROM b WHERE b.x = a.x) AS e, x IN (SELECT x FROM b WHERE z <> 's') AS i, \
               x NOT IN (SELECT x FROM b) AS n FROM a ORDER BY y";
    assert_eq!(
        rows(sql).await.unwrap(),
        ["none false  ", "one true true false", "three false false ", "two true true false"]
    );
}

#[tokio::test]
async fn a_reference_may_cross_two_levels() {
    let sql = "SELECT y, (SELECT max(z) FROM b WHERE EXISTS (SELECT 1 FROM b c WHERE c.x = a.x AND c.z = b.z)) AS m \
               FROM a ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), ["none ", "one p", "three ", "two r"]);
}

#[tokio::test]
async fn case_runs_subqueries_of_taken_branches_only() {
    let sql = "SELECT y, CASE WHEN x = 1 THEN (SELECT z FROM b WHERE b.x = a.x) END AS z FROM a ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), ["none ", "one p", "three ", "two "]);
}

#[tokio::test]
async fn correlated_not_in_with_null_is_null() {
    let sql = "SELECT y FROM a WHERE x NOT IN (SELECT b.x FROM b WHERE b.z <> a.y) ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn aggregates_keep_their_join() {
    let state = state();
    let sql = "SELECT y, (SELECT count(*) FROM b WHERE b.x = a.x) AS n FROM a";
    let plan = state.create_logical_plan(sql).await.unwrap();
    let plan = state.optimize(&plan).unwrap();
    assert!(plan.display_indent().to_string().contains("Left Join"), "{}", plan.display_indent());
}

#[tokio::test]
async fn an_array_has_all_rows_in_order_and_is_empty_without_any() {
    let sql = "SELECT y, array_subquery((SELECT z FROM b WHERE b.x = a.x ORDER BY z DESC)) AS zs FROM a ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), ["none []", "one [p]", "three []", "two [r, q]"]);
}

#[tokio::test]
async fn operators_of_all_kinds_read_subqueries_as_columns() {
    let sql = "SELECT count(*) AS n, max(coalesce((SELECT z FROM b WHERE b.x = a.x ORDER BY z LIMIT 1), '-')) AS m FROM a \
               GROUP BY EXISTS (SELECT 1 FROM b WHERE b.x = a.x) OR x = 3 ORDER BY n, m";
    assert_eq!(rows(sql).await.unwrap(), ["1 -", "3 q"]);
    let sql =
        "SELECT y, sum(x) OVER (PARTITION BY (SELECT z FROM b WHERE b.x = a.x LIMIT 1) IS NULL) AS s FROM a ORDER BY y";
    assert_eq!(rows(sql).await.unwrap(), ["none 3", "one 3", "three 3", "two 3"]);
}

#[tokio::test]
async fn join_condition_may_call_subqueries() {
    let among = "(SELECT c.z FROM b c WHERE c.x = a.x AND c.z >= b.z ORDER BY c.z LIMIT 1)";
    let sql = format!("SELECT y, z FROM a JOIN b ON a.x = b.x AND b.z < {among} || 'a' ORDER BY y, z");
    assert_eq!(rows(&sql).await.unwrap(), ["one p", "two q", "two r"]);
    let sql = format!("SELECT y, z FROM a LEFT JOIN b ON b.z = {among} ORDER BY y, z");
    assert_eq!(rows(&sql).await.unwrap(), ["none ", "one p", "three ", "two q", "two r"]);
    let sql = format!("SELECT y, z FROM b RIGHT JOIN a ON b.z = {among} AND b.z <> 'q' ORDER BY y, z");
    assert_eq!(rows(&sql).await.unwrap(), ["none ", "one p", "three ", "two r"]);
}

#[tokio::test]
async fn and_or_evaluate_right_side_for_undecided_rows() {
    let two = "(SELECT z FROM b WHERE b.x = a.x) <> ''";
    let sql = format!("SELECT y, x <> 2 AND {two} AS t, x = 2 OR {two} AS o FROM a ORDER BY y");
    assert_eq!(rows(&sql).await.unwrap(), ["none  ", "one true true", "three  ", "two false true"]);
}
