//! Tests of which parts are shared, and that sharing does not change results.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, collect};
use parking_lot::Mutex;

use super::{OptimizedPlan, SharedPlan, SharedScanExtension, SharedScanPlanner, SharedTable, optimize};
use crate::test_fixtures::{TableColumns, Warehouse, texts};

fn sales() -> Warehouse {
    let sale: TableColumns = vec![
        ("s_day", (0..4_000).map(|row| Some(1_000 + row % 400).filter(|_| row % 17 != 0)).collect()),
        ("s_item", (0..4_000).map(|row| Some(row * 7 % 100)).collect()),
        ("s_price", (0..4_000).map(|row| Some(row % 90).filter(|_| row % 13 != 0)).collect()),
    ];
    let day: TableColumns = vec![
        ("d_id", (0..3_000).map(Some).collect()),
        ("d_year", (0..3_000).map(|day| Some(day / 200)).collect()),
        ("d_week", (0..3_000).map(|day| Some(day / 7)).collect()),
    ];
    let none: TableColumns = vec![("n_item", Vec::new()), ("n_price", Vec::new())];
    Warehouse::new(&[("sale", sale), ("day", day), ("none", none)])
}

async fn optimized(warehouse: &Warehouse, sql: &str, is_on: bool) -> OptimizedPlan {
    let state = warehouse.session(is_on).state();
    let plan = state.create_logical_plan(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    // The binder analyzes plans before it optimizes them.
    let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}).unwrap();
    optimize(plan, &state, &Ok).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

async fn rows(warehouse: &Warehouse, sql: &str) -> Vec<String> {
    let known = optimized(warehouse, sql, true).await;
    // A cached plan computes its shared rows in every run.
    let own = run(warehouse, &known, sql).await;
    assert_eq!(run(warehouse, &known, sql).await, own, "{sql}");
    own
}

/// Rows of shared tables by table number, with the columns that their plans give.
#[derive(Debug, Default)]
struct RowsInMemory(Mutex<HashMap<usize, (RecordBatch, Vec<usize>)>>);

impl SharedScanPlanner for RowsInMemory {
    fn plan_scan(&self, table: &SharedTable, columns: &[usize], _: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let (rows, given) = self.0.lock()[&table.number].clone();
        let place = |column: &usize| given.binary_search(column).expect("the plan gives what is read");
        let places = columns.iter().map(place).collect();
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows.clone()]], rows.schema(), Some(places))?)
    }
}

async fn run(warehouse: &Warehouse, optimized: &OptimizedPlan, sql: &str) -> Vec<String> {
    let session = warehouse.session(true);
    let (mut state, known) = (session.state(), Arc::new(RowsInMemory::default()));
    let scans: Arc<dyn SharedScanPlanner> = Arc::<RowsInMemory>::clone(&known);
    state.config_mut().set_extension(Arc::new(SharedScanExtension(scans)));
    let collected = async |plan: &LogicalPlan| {
        let operators = state.query_planner().create_physical_plan(plan, &state).await.expect("it has operators");
        let schema = operators.schema();
        let batches = collect(operators, session.task_ctx()).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        (schema, batches)
    };
    for SharedPlan { table, plan, columns } in &optimized.shared {
        let (schema, batches) = collected(plan).await;
        let rows = arrow::compute::concat_batches(&schema, &batches).expect("they have one schema");
        known.0.lock().insert(table.number, (rows, columns.clone()));
    }
    let (_, batches) = collected(&optimized.plan).await;
    let mut rows: Vec<String> = batches.iter().flat_map(texts).collect();
    rows.sort();
    rows
}

/// Returns how often each of `sale`, `day` and `none` is scanned in all plans of a query, and the number of shared
/// plans.
async fn scans(warehouse: &Warehouse, sql: &str) -> ([usize; 3], usize) {
    let optimized = optimized(warehouse, sql, true).await;
    let mut counts = [0; 3];
    for plan in optimized.shared.iter().map(|shared| &shared.plan).chain([&optimized.plan]) {
        let walked = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(at) = ["sale", "day", "none"].iter().position(|name| *name == scan.table_name.table())
            {
                counts[at] += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        });
        walked.unwrap();
    }
    (counts, optimized.shared.len())
}

/// Checks that the query has the same rows as without the rules, how often tables are scanned and how many plans are
/// shared.
async fn check(sql: &str, expected: ([usize; 3], usize)) {
    let warehouse = sales();
    assert_eq!(scans(&warehouse, sql).await, expected, "{sql}\n{}", display_plans(&warehouse, sql).await);
    assert_eq!(rows(&warehouse, sql).await, warehouse.rows(sql, false).await, "{sql}");
    assert!(optimized(&warehouse, sql, false).await.shared.is_empty(), "{sql} without rules");
}

async fn display_plans(warehouse: &Warehouse, sql: &str) -> String {
    let optimized = optimized(warehouse, sql, true).await;
    let plans = optimized.shared.iter().map(|shared| &shared.plan).chain([&optimized.plan]);
    plans.map(|plan| plan.display_indent().to_string()).collect::<Vec<_>>().join("\n\n")
}

const BY_ITEM: &str =
    "SELECT s_item, count(*) AS n, sum(s_price) AS price FROM sale, day WHERE s_day = d_id GROUP BY s_item";

#[tokio::test]
async fn a_with_query_that_is_read_twice_is_computed_once() {
    let with = format!("WITH x AS ({BY_ITEM})");
    check(&format!("{with} SELECT a.s_item, b.n FROM x AS a, x AS b WHERE a.price = b.price"), ([1, 1, 0], 1)).await;
    check(&format!("{with} SELECT n FROM x UNION ALL SELECT price FROM x WHERE n > 30"), ([1, 1, 0], 1)).await;
    check(&format!("{with} SELECT s_item FROM x WHERE n > (SELECT avg(n) FROM x)"), ([1, 1, 0], 1)).await;
    check(
        &format!("{with} SELECT s_item FROM x AS a WHERE n >= (SELECT avg(n) FROM x AS b WHERE b.price = a.price)"),
        ([1, 1, 0], 1),
    )
    .await;
    check(
        &format!(
            "{with} SELECT count(*) FROM sale WHERE s_item IN (SELECT n FROM x) AND s_day IN (SELECT price FROM x)"
        ),
        ([2, 1, 0], 1),
    )
    .await;
}

#[tokio::test]
async fn a_with_query_that_is_read_once_is_part_of_its_reader() {
    check(&format!("WITH x AS ({BY_ITEM}) SELECT n FROM x WHERE s_item = 3"), ([1, 1, 0], 0)).await;
}

#[tokio::test]
async fn subqueries_are_equal_whatever_they_are_called() {
    check(
        "SELECT a.n FROM (SELECT s.s_item AS i, count(*) AS n FROM sale AS s JOIN day AS d ON s.s_day = d.d_id GROUP BY s.s_item) AS a,
                (SELECT t.s_item, count(*) AS c FROM sale AS t JOIN day AS e ON t.s_day = e.d_id GROUP BY t.s_item) AS b
         WHERE a.i = b.c",
        ([1, 1, 0], 1),
    )
    .await;
    // Queries that differ in a column, a constant or a join type are not equal.
    for other in [
        "SELECT s_day AS i, count(*) AS n FROM sale JOIN day ON s_day = d_id GROUP BY s_day",
        "SELECT s_item AS i, count(*) AS n FROM sale JOIN day ON s_day = d_id AND d_year = 6 GROUP BY s_item",
        "SELECT s_item AS i, count(*) AS n FROM sale LEFT JOIN day ON s_day = d_id GROUP BY s_item",
        "SELECT s_item AS i, count(s_price) AS n FROM sale JOIN day ON s_day = d_id GROUP BY s_item",
    ] {
        let sql = format!(
            "SELECT a.n, b.n FROM (SELECT s_item AS i, count(*) AS n FROM sale JOIN day ON s_day = d_id GROUP BY s_item) AS a, ({other}) AS b WHERE a.i = b.i"
        );
        let (_, shared) = scans(&sales(), &sql).await;
        assert_eq!(shared, 0, "{sql}");
    }
}

#[tokio::test]
async fn what_all_readers_leave_out_is_not_computed() {
    let with =
        "WITH x AS (SELECT d_year, s_item, count(*) AS n FROM sale, day WHERE s_day = d_id GROUP BY d_year, s_item)";
    let shared = async |sql: &str| display_plans(&sales(), sql).await.split("\n\n").next().unwrap().to_owned();
    let sql = format!(
        "{with} SELECT a.s_item FROM x AS a, x AS b WHERE a.s_item = b.s_item AND a.d_year = 5 AND b.d_year = 5"
    );
    check(&sql, ([1, 1, 0], 1)).await;
    let plan = shared(&sql).await;
    assert!(plan.contains("d_year = Int32(5)") && !plan.contains("count("), "{plan}");
    // One reader of three filters, the others need all rows.
    let sql = format!(
        "{with} SELECT a.s_item FROM x AS a, x AS b, x AS c WHERE a.n = b.n AND b.n = c.s_item AND c.d_year = 5"
    );
    check(&sql, ([1, 1, 0], 1)).await;
    assert!(!shared(&sql).await.contains("Int32(5)"));
    // Conditions on aggregates cannot be pushed below the aggregation.
    let sql = format!("{with} SELECT a.s_item FROM x AS a, x AS b WHERE a.s_item = b.s_item AND a.n = 5 AND b.n = 6");
    check(&sql, ([1, 1, 0], 1)).await;
    // The readers need different rows.
    let sql = format!("{with} SELECT n FROM x WHERE d_year = 5 UNION ALL SELECT n FROM x WHERE d_year = 6");
    check(&sql, ([2, 2, 0], 0)).await;
    let sql = format!("{with} SELECT n FROM x WHERE d_year = 5 UNION ALL SELECT n FROM x");
    check(&sql, ([2, 2, 0], 0)).await;
}

#[tokio::test]
async fn what_any_of_many_readers_asks_for_is_computed_once() {
    let of = |body: &str| format!("WITH x AS (SELECT d_year, s_item, count(*) AS n {body} GROUP BY d_year, s_item)");
    let years = |count: i32| {
        let readers = (0..count).map(|year| format!("SELECT n FROM x WHERE d_year = {}", year + 4));
        readers.collect::<Vec<_>>().join(" UNION ALL ")
    };
    let sql = format!("{} {}", of("FROM sale, day WHERE s_day = d_id"), years(3));
    check(&sql, ([1, 1, 0], 1)).await;
    let plan = display_plans(&sales(), &sql).await;
    assert!(plan.contains("d_year = Int32(4) OR day.d_year = Int32(5) OR day.d_year = Int32(6)"), "{plan}");
    // Each reader would read the whole nullable side of the outer join.
    let body = "FROM sale JOIN day ON s_day = d_id LEFT JOIN none ON n_item = s_item";
    check(&format!("{} {}", of(body), years(2)), ([1, 1, 1], 1)).await;
}

#[tokio::test]
async fn a_shared_part_may_read_another() {
    let sql = format!(
        "WITH x AS ({BY_ITEM}), y AS (SELECT a.s_item, count(*) AS m FROM x AS a, x AS b WHERE a.price < b.price GROUP BY a.s_item)
         SELECT p.m FROM y AS p, y AS q, x WHERE p.s_item = q.m AND x.n = p.m"
    );
    check(&sql, ([1, 1, 0], 2)).await;
}

#[tokio::test]
async fn growing_joins_are_not_shared() {
    let with = "WITH x AS (SELECT a.s_item AS i, b.s_price AS p FROM sale AS a, sale AS b WHERE a.s_item = b.s_item AND a.s_day < b.s_day)";
    let (_, shared) =
        scans(&sales(), &format!("{with} SELECT (SELECT count(*) FROM x) + (SELECT min(p) FROM x)")).await;
    assert_eq!(shared, 0);
    let with = "WITH x AS (SELECT s_item AS i, s_price AS p FROM sale, day WHERE s_day = d_id AND d_id = 1100)";
    check(&format!("{with} SELECT a.p FROM x AS a, x AS b WHERE a.i = b.i"), ([1, 1, 0], 1)).await;
    // A bare scan is not shared.
    check(
        "WITH x AS (SELECT s_item AS i FROM sale) SELECT count(*) FROM x AS a, x AS b WHERE a.i = b.i",
        ([2, 0, 0], 0),
    )
    .await;
}

#[tokio::test]
async fn volatile_and_correlated_subplans_are_not_shared() {
    for sql in [
        "SELECT (SELECT count(*) FROM sale, day WHERE s_day = d_id AND random() < 2.0) + (SELECT count(*) FROM sale, day WHERE s_day = d_id AND random() < 2.0)",
        "SELECT (SELECT count(*) FROM sale WHERE s_day = d_id) + (SELECT count(*) FROM sale WHERE s_day = d_id) FROM day WHERE d_id < 1010",
    ] {
        let (_, shared) = scans(&sales(), sql).await;
        assert_eq!(shared, 0, "{sql}");
    }
}

#[tokio::test]
async fn shared_tables_of_empty_inputs_are_empty() {
    let with = "WITH x AS (SELECT n_item, sum(n_price) AS price, count(*) AS n FROM none GROUP BY n_item)";
    check(&format!("{with} SELECT a.n FROM x AS a LEFT JOIN x AS b ON a.n = b.n"), ([0, 0, 1], 1)).await;
    let with = "WITH x AS (SELECT sum(n_price) AS price, count(*) AS n FROM none)";
    check(&format!("{with} SELECT a.n, b.price FROM x AS a LEFT JOIN x AS b ON a.n = b.price"), ([0, 0, 1], 1)).await;
}

// Literals have the columns' type, because conditions with casts are not fused.
#[tokio::test]
async fn totals_of_the_same_rows_are_computed_in_one_pass() {
    let totals = "SELECT count(*) AS n, min(s_price) AS price FROM sale, day WHERE s_day = d_id AND d_year = 5::int";
    let sql = format!(
        "SELECT a.n, b.n, c.price FROM ({totals} AND d_week < 150::int) AS a, ({totals} AND d_week > 160::int AND s_item < 50::int) AS b, ({totals} AND d_week = 1::int) AS c"
    );
    check(&sql, ([1, 1, 0], 1)).await;
    let plan = display_plans(&sales(), &sql).await;
    assert!(plan.contains("d_year = Int32(5)") && plan.contains("FILTER (WHERE"), "{plan}");
    // One aggregate has no condition beyond the common ones.
    let sql = format!(
        "SELECT a.n, b.price FROM ({totals} AND d_week < 150::int) AS a, ({totals} AND d_week < 150::int AND d_week > 143::int) AS b"
    );
    check(&sql, ([2, 2, 0], 0)).await;
    // Over no rows a count is 0 and a minimum NULL.
    let sql = format!(
        "SELECT a.n, b.price FROM ({totals} AND d_week < -5::int) AS a, ({totals} AND d_week > 9000::int) AS b"
    );
    check(&sql, ([1, 1, 0], 1)).await;
    // Aggregates over bare scans are not fused.
    let sql = "SELECT (SELECT count(*) FROM sale WHERE s_price = 1::int), (SELECT max(s_item) FROM sale WHERE s_price = 2::int)";
    check(sql, ([2, 0, 0], 0)).await;
}

#[tokio::test]
async fn totals_that_find_their_rows_by_other_columns_or_may_fail_stay_apart() {
    for sql in [
        "SELECT (SELECT count(*) FROM sale WHERE s_price = 1::int) AS a, (SELECT count(*) FROM sale WHERE s_item = 2::int) AS b",
        "SELECT (SELECT count(*) FROM sale) AS a, (SELECT sum(s_item) FROM sale WHERE s_item = 2::int) AS b",
        "SELECT (SELECT sum(1 / s_price) FROM sale WHERE s_price > 0::int) AS a, (SELECT count(*) FROM sale WHERE s_price = 0::int) AS b",
        "SELECT (SELECT count(*) FROM sale WHERE s_price > random()) AS a, (SELECT count(*) FROM sale WHERE s_price < 3::int) AS b",
        "SELECT (SELECT count(*) FROM sale WHERE s_price > 3::int) AS a, (SELECT count(*) FROM none WHERE n_price < 3::int) AS b",
        "SELECT (SELECT count(*) FROM sale WHERE s_price = d_id) AS a, (SELECT count(*) FROM sale WHERE s_price = d_id + 1) AS b FROM day WHERE d_id < 9",
    ] {
        let (_, shared) = scans(&sales(), sql).await;
        assert_eq!(shared, 0, "{sql}");
    }
}
