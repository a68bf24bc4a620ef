//! Tests of the chosen join orders, and that join ordering does not change results.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use super::graph::JoinGraph;
use super::join_cardinality::SizeEstimates;
use super::leaf_set::LeafSet;
use crate::estimate_relation;
use crate::test_fixtures::{TableColumns, Warehouse};

/// Returns pseudorandom numbers below `below`, some of them NULL.
fn numbers(seed: u64, count: usize, below: i32) -> Vec<Option<i32>> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        i32::try_from(state % 1_000_003).unwrap()
    };
    (0..count).map(|_| Some(next() % below).filter(|_| next() % 11 != 0)).collect()
}

fn keys(count: i32) -> Vec<Option<i32>> {
    (0..count).map(Some).collect()
}

/// Returns a snowflake schema: a fact table with two dimensions, one of which has a dimension itself.
fn star() -> Warehouse {
    let fact: TableColumns = vec![
        ("f_id", keys(4_000)),
        ("f_day", numbers(1, 4_000, 300)),
        ("f_item", numbers(2, 4_000, 50)),
        ("f_value", numbers(3, 4_000, 1_000)),
    ];
    let day: TableColumns = vec![("d_id", keys(300)), ("d_year", (0..300).map(|day| Some(day / 100)).collect())];
    let item: TableColumns = vec![("i_id", keys(50)), ("i_brand", numbers(4, 50, 5)), ("i_price", numbers(5, 50, 90))];
    let brand: TableColumns = vec![("b_id", keys(5)), ("b_country", vec![Some(1), Some(1), Some(2), None, Some(3)])];
    Warehouse::new(&[("fact", fact), ("day", day), ("item", item), ("brand", brand)])
}

async fn check_same_rows(warehouse: &Warehouse, sql: &str) {
    assert_eq!(warehouse.rows(sql, true).await, warehouse.rows(sql, false).await, "{sql}");
}

#[tokio::test]
async fn small_inputs_are_built_and_reduce_early() {
    let sql = "SELECT f_value FROM fact, day, item, brand
               WHERE f_day = d_id AND f_item = i_id AND i_brand = b_id AND b_country = 2 AND d_year = 1";
    let plan = star().plan(sql, true).await.display_indent().to_string();
    let at = |name: &str| plan.find(&format!("TableScan: {name}")).unwrap_or_else(|| panic!("{name} in {plan}"));
    // The filtered days or the brands of one country are a build side that the fact table probes.
    assert!(at("day") < at("fact") || at("brand") < at("fact"), "{plan}");
    assert!(at("brand") < at("item"), "{plan}");
    assert!(!plan.contains("Cross Join"), "{plan}");
}

#[tokio::test]
async fn orders_do_not_change_results() {
    let warehouse = star();
    for sql in [
        "SELECT * FROM fact, day, item, brand WHERE f_day = d_id AND f_item = i_id AND i_brand = b_id",
        "SELECT f_id, b_country FROM fact JOIN item ON f_item = i_id LEFT JOIN brand ON i_brand = b_id AND b_country < 3",
        "SELECT f_id, b_id FROM brand RIGHT JOIN item ON i_brand = b_id JOIN fact ON f_item = i_id WHERE b_country IS NULL",
        "SELECT d_year, count(*) FROM fact, day WHERE f_day = d_id AND f_item IN (SELECT i_id FROM item WHERE i_price > 40) GROUP BY d_year",
        "SELECT count(*) FROM fact, day WHERE f_day = d_id AND f_item NOT IN (SELECT i_id FROM item WHERE i_price > 40)",
        "SELECT count(*) FROM fact, day WHERE f_day = d_id AND f_item NOT IN (SELECT i_brand FROM item)",
        "SELECT count(*) FROM fact f, day WHERE f_day = d_id AND EXISTS (SELECT 1 FROM fact o WHERE o.f_item = f.f_item AND o.f_value <> f.f_value)",
        "SELECT count(*) FROM fact f, day WHERE f_day = d_id AND NOT EXISTS (SELECT 1 FROM item WHERE i_id = f_item AND i_price > d_year)",
        "SELECT count(*) FROM fact, day WHERE f_day = d_id AND (EXISTS (SELECT 1 FROM item WHERE i_id = f_item AND i_price > 50) OR EXISTS (SELECT 1 FROM brand WHERE b_id = f_item))",
        "SELECT count(*) FROM fact, day, item WHERE f_day = d_id AND f_value > i_price + d_year AND f_value < 5",
        "SELECT count(*) FROM fact a, fact b, fact c WHERE a.f_item = b.f_item AND b.f_item = c.f_item AND a.f_value = b.f_value AND a.f_id < 50 AND c.f_id < 90",
        "SELECT count(*), sum(a.f_value) FROM fact a, fact b WHERE a.f_day = b.f_day AND a.f_item = b.f_item AND b.f_value < 300",
        "SELECT d_id, x.total FROM day LEFT JOIN (SELECT f_day, sum(f_value) AS total FROM fact, item WHERE f_item = i_id AND i_price < 9 GROUP BY f_day) x ON x.f_day = d_id WHERE d_year = 2",
        "SELECT count(*) FROM fact LEFT JOIN item ON f_item = i_id LEFT JOIN brand ON i_brand = b_id JOIN day ON d_id = f_day WHERE coalesce(b_country, 2) = 2",
        "SELECT count(*) FROM fact FULL JOIN item ON f_item = i_id AND f_id < 100, brand WHERE i_brand = b_id",
        "SELECT count(*) FROM item, brand, day WHERE d_id < 3",
        "SELECT f_id FROM fact, item WHERE f_item = i_id AND f_day = i_id AND i_price + f_item = 60",
        "SELECT f_value FROM fact WHERE f_item = (SELECT max(i_id) FROM item, brand WHERE i_brand = b_id AND b_country = 1)",
        "SELECT count(*) FROM fact, item WHERE f_item = i_id AND f_value > (SELECT avg(o.f_value) FROM fact o WHERE o.f_item = i_id)",
        "SELECT b_id FROM brand INTERSECT SELECT i_brand FROM item EXCEPT SELECT f_item FROM fact, day WHERE f_day = d_id AND d_id < 2",
        "SELECT count(*) FROM fact, day WHERE f_day = d_id AND 1 = 0",
        "SELECT x.i_id, y.i_id FROM (SELECT i_id, i_brand FROM item, brand WHERE i_brand = b_id) x, (SELECT i_id, i_brand FROM item, brand WHERE i_brand = b_id) y WHERE x.i_brand = y.i_brand",
        "SELECT count(*) FROM fact LEFT JOIN day ON f_day = d_id AND d_year = 1 JOIN item ON f_item = i_id AND i_price > d_id",
        "SELECT count(*) FROM fact WHERE EXISTS (SELECT 1 FROM brand WHERE b_country = 2)",
        "SELECT count(*) FROM day LEFT JOIN brand ON true JOIN item ON i_id = d_id",
    ] {
        check_same_rows(&warehouse, sql).await;
    }
}

/// Returns the filter right above the scan of a table.
async fn filter_above_scan(sql: &str, table: &str) -> String {
    let plan = star().plan(sql, true).await;
    let mut asked = String::new();
    let walked = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node
            && let LogicalPlan::TableScan(scan) = filter.input.as_ref()
            && scan.table_name.table() == table
        {
            asked = filter.predicate.to_string();
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.unwrap();
    asked
}

#[tokio::test]
async fn conditions_follow_from_equalities() {
    for (sql, table, condition) in [
        ("SELECT 1 FROM fact, day WHERE f_day = d_id AND d_id < 5", "fact", "fact.f_day < Int32(5)"),
        ("SELECT 1 FROM fact JOIN day ON f_day = d_id WHERE 7 = f_day", "day", "day.d_id = Int32(7)"),
        (
            "SELECT 1 FROM fact, day, item WHERE f_day = d_id AND d_id = i_id AND f_day > 3",
            "item",
            "item.i_id > Int32(3)",
        ),
        (
            "SELECT 1 FROM fact, day, item WHERE f_day = d_id AND d_id = i_id AND i_id IN (1, 2, 5, 8)",
            "fact",
            "fact.f_day IN ([Int32(1), Int32(2), Int32(5), Int32(8)])",
        ),
        ("SELECT 1 FROM fact LEFT JOIN day ON f_day = d_id WHERE f_day < 9", "day", "day.d_id < Int32(9)"),
        ("SELECT 1 FROM day RIGHT JOIN fact ON f_day = d_id WHERE f_day < 9", "day", "day.d_id < Int32(9)"),
        (
            "SELECT 1 FROM fact WHERE f_day < 9 AND NOT EXISTS (SELECT 1 FROM day WHERE d_id = f_day)",
            "day",
            "day.d_id < Int32(9)",
        ),
        ("SELECT 1 FROM fact WHERE f_day IN (SELECT d_id FROM day WHERE d_id < 9)", "fact", "fact.f_day < Int32(9)"),
        (
            "SELECT 1 FROM item, (SELECT f_item, count(*) AS n FROM fact GROUP BY f_item) AS s WHERE f_item = i_id AND i_id < 4",
            "fact",
            "fact.f_item < Int32(4)",
        ),
        (
            "SELECT 1 FROM item, (SELECT f_item AS x FROM fact UNION ALL SELECT b_id FROM brand) AS s WHERE x = i_id AND i_id < 4",
            "brand",
            "brand.b_id < Int32(4)",
        ),
        // Of two conditions only the tighter one is added.
        ("SELECT 1 FROM fact, day WHERE f_day = d_id AND d_id < 5 AND f_day < 4", "fact", "fact.f_day < Int32(4)"),
        ("SELECT 1 FROM fact, day WHERE f_day = d_id AND d_id < 5 AND f_day < 4", "day", "day.d_id < Int32(4)"),
    ] {
        assert!(
            filter_above_scan(sql, table).await.ends_with(condition),
            "{sql}: {}",
            filter_above_scan(sql, table).await
        );
        check_same_rows(&star(), sql).await;
    }
}

#[tokio::test]
async fn conditions_do_not_follow_where_rows_stay_without_partners() {
    for (sql, table) in [
        ("SELECT f_id, d_id FROM fact LEFT JOIN day ON f_day = d_id AND d_id < 5", "fact"),
        ("SELECT f_id, d_id FROM fact FULL JOIN day ON f_day = d_id AND d_id < 5", "fact"),
        ("SELECT f_id FROM fact WHERE NOT EXISTS (SELECT 1 FROM day WHERE d_id = f_day AND d_id < 5)", "fact"),
        ("SELECT i_id FROM item WHERE i_id < 5 AND i_id NOT IN (SELECT f_item FROM fact)", "fact"),
        ("SELECT f_id FROM fact, day WHERE f_day + 0 = d_id AND d_id < 5", "fact"),
        ("SELECT f_id FROM fact, day WHERE f_day = d_id AND d_id < 5 + random() * 0", "fact"),
        (
            "SELECT n FROM item, (SELECT f_item, row_number() OVER (ORDER BY f_id) AS n FROM fact) AS s WHERE f_item = i_id AND i_id < 4",
            "fact",
        ),
        (
            "SELECT f_id FROM item, (SELECT f_item, f_id FROM fact ORDER BY f_id LIMIT 70) AS s WHERE f_item = i_id AND i_id < 4",
            "fact",
        ),
    ] {
        assert_eq!(filter_above_scan(sql, table).await, "", "{sql}");
        check_same_rows(&star(), sql).await;
    }
}

#[tokio::test]
async fn conditions_that_follow_are_not_counted_twice() {
    for sql in [
        "SELECT f_id FROM fact, day WHERE f_day = d_id AND d_id < 30",
        "SELECT f_id FROM fact, day WHERE f_day = d_id AND d_id = 30",
        "SELECT f_id FROM fact, day WHERE f_day = d_id AND d_id IN (1, 5, 9, 100, 200)",
        "SELECT f_id FROM fact, day, item WHERE f_day = d_id AND d_id = i_id AND i_id < 25",
    ] {
        let warehouse = star();
        let estimated = estimate_relation(&warehouse.plan(sql, true).await).rows;
        let actual = warehouse.rows(sql, true).await.len() as f64;
        assert!((actual / 2.0..=actual * 2.0).contains(&estimated), "{sql}: {estimated} for {actual}");
    }
}

#[tokio::test]
async fn outer_joins_whose_columns_must_not_be_null_are_inner() {
    for (sql, is_outer) in [
        ("SELECT i_id FROM item LEFT JOIN brand ON i_brand = b_id, day WHERE b_country = d_year", false),
        ("SELECT f_id FROM day, fact LEFT JOIN item ON f_item = i_id WHERE i_price < d_id AND f_day = d_id", false),
        (
            "SELECT f_id FROM fact LEFT JOIN item ON f_item = i_id LEFT JOIN brand ON i_brand = b_id, day WHERE b_country = d_year",
            false,
        ),
        (
            "SELECT i_id FROM item LEFT JOIN brand ON i_brand = b_id AND b_country > 1, day WHERE b_country = d_year",
            false,
        ),
        ("SELECT i_id FROM item LEFT JOIN brand ON i_brand = b_id, day WHERE coalesce(b_country, 1) = d_year", true),
        ("SELECT i_id FROM item LEFT JOIN brand ON i_brand = b_id, day WHERE (b_country = d_year) IS NULL", true),
        ("SELECT i_id FROM item LEFT JOIN brand ON i_brand = b_id, day WHERE i_price = d_year", true),
    ] {
        let warehouse = star();
        let plan = warehouse.plan(sql, true).await.display_indent().to_string();
        let has_outer = plan.contains("Left Join") || plan.contains("Right Join");
        assert_eq!(has_outer, is_outer, "{sql}\n{plan}");
        check_same_rows(&warehouse, sql).await;
    }
}

#[tokio::test]
async fn a_range_that_confines_a_leaf_is_known_of_its_other_columns() {
    // The condition selects the weeks of 70 days out of 3,000, and with them about a quarter of the sales, though the
    // calendar `d` itself has no filter.
    let day: TableColumns = vec![("d_id", keys(3_000)), ("d_week", (0..3_000).map(|day| Some(day / 7)).collect())];
    // The days with sales are a narrow range of the calendar too, but a wider one.
    let sale: TableColumns = vec![("s_id", keys(9_000)), ("s_day", (0..9_000).map(|sale| Some(sale % 250)).collect())];
    let warehouse = Warehouse::new(&[("day", day), ("sale", sale)]);
    let sql = "SELECT s_id FROM sale, day AS d, day AS w WHERE s_day = d.d_id AND d.d_week = w.d_week AND w.d_id < 70";
    let plan = warehouse.plan(sql, true).await;
    let mut joins = &plan;
    while let LogicalPlan::Projection(projection) = joins {
        joins = &projection.input;
    }
    let graph = JoinGraph::try_from_plan(joins).expect("three tables are joined");
    let sizes = SizeEstimates::new(&graph);
    let estimated = sizes.rows(LeafSet::first(3));
    let actual = warehouse.rows(sql, true).await.len() as f64;
    assert!((actual / 2.0..=actual * 2.0).contains(&estimated), "{estimated} for {actual}");
    let at = |name: &str| {
        let shows = |leaf: &LogicalPlan| leaf.schema().field_names().iter().any(|column| column.contains(name));
        LeafSet::from_leaf(graph.leaves.iter().position(|leaf| shows(&leaf.plan)).expect("a leaf of each table"))
    };
    let sale = at("s_day");
    let days = (0..3).map(LeafSet::from_leaf).filter(|leaf| *leaf != sale).fold(LeafSet::EMPTY, LeafSet::union);
    // The build side's min/max filter restricts the scan of sales.
    assert!(sizes.runtime_filter_selectivity(days, sale) < 0.4, "{}", sizes.runtime_filter_selectivity(days, sale));
    assert!((sizes.runtime_filter_selectivity(LeafSet::EMPTY, sale) - 1.0).abs() < f64::EPSILON);
}

/// Returns a star schema with many facts per item.
fn many_facts_per_item() -> Warehouse {
    let fact: TableColumns = vec![
        ("f_id", keys(120_000)),
        ("f_item", numbers(2, 120_000, 50)),
        ("f_day", numbers(6, 120_000, 300)),
        ("f_value", numbers(3, 120_000, 1_000)),
    ];
    let day: TableColumns = vec![("d_id", keys(300)), ("d_year", (0..300).map(|day| Some(day / 100)).collect())];
    // Some item ids occur twice.
    let item: TableColumns =
        vec![("i_id", (0..60).map(|item| Some(item * 5 / 6)).collect()), ("i_brand", numbers(4, 60, 5))];
    Warehouse::new(&[("fact", fact), ("day", day), ("item", item)])
}

#[tokio::test]
async fn groups_are_made_before_outer_joins_too() {
    let warehouse = many_facts_per_item();
    let joined = |side: &str| format!("FROM item LEFT JOIN {side} ON f_item = i_id GROUP BY i_brand");
    let fact = "(SELECT * FROM fact WHERE f_value IS NULL OR f_value < 990) AS f";
    for (sql, aggregates) in [
        (format!("SELECT i_brand, count(f_item), sum(f_value), min(f_id), max(f_value) {}", joined(fact)), 2),
        ("SELECT i_brand, count(f_id) AS n FROM fact RIGHT JOIN item ON f_item = i_id GROUP BY i_brand".to_owned(), 2),
        ("SELECT i_id, i_brand, count(f_value) FROM item LEFT JOIN fact ON f_item = i_id GROUP BY 1, 2".to_owned(), 2),
        ("SELECT n, count(*) FROM (SELECT i_id, count(f_id) AS n FROM item LEFT JOIN fact ON f_item = i_id GROUP BY i_id) AS s GROUP BY n".to_owned(), 3),
        // Not rewritten: rows without a partner count or have a value, a FILTER clause, group keys of the nullable
        // side, each row its own group, a join condition besides the keys, a FULL JOIN.
        (format!("SELECT i_brand, count(*) {}", joined("fact")), 1),
        (format!("SELECT i_brand, sum(CASE WHEN f_id IS NULL THEN 1 ELSE 0 END) {}", joined("fact")), 1),
        (format!("SELECT i_brand, count(f_id) FILTER (WHERE f_value < 3) {}", joined("fact")), 1),
        ("SELECT f_item, count(f_id) FROM item LEFT JOIN fact ON f_item = i_id GROUP BY f_item".to_owned(), 1),
        ("SELECT i_brand, count(f_id) FROM item LEFT JOIN fact ON f_id = i_id GROUP BY i_brand".to_owned(), 1),
        ("SELECT i_brand, count(f_id) FROM item LEFT JOIN fact ON f_item = i_id AND f_value < i_brand * 200 GROUP BY i_brand".to_owned(), 1),
        ("SELECT i_brand, count(f_id) FROM item FULL JOIN fact ON f_item = i_id GROUP BY i_brand".to_owned(), 1),
    ] {
        let plan = warehouse.plan(&sql, true).await.display_indent().to_string();
        assert_eq!(plan.matches("Aggregate:").count(), aggregates, "{sql}\n{plan}");
        check_same_rows(&warehouse, &sql).await;
    }
}

#[tokio::test]
async fn groups_are_made_before_joins_where_that_leaves_few() {
    let warehouse = many_facts_per_item();
    for (sql, aggregates) in [
        (
            "SELECT i_brand, sum(f_value), count(*), count(f_value), min(f_id), max(f_value) FROM fact, item WHERE f_item = i_id GROUP BY i_brand",
            2,
        ),
        ("SELECT i_brand, count(*) AS n FROM fact JOIN item ON f_item = i_id GROUP BY i_brand", 2),
        (
            "SELECT i_brand, f_item, sum(f_value) FILTER (WHERE f_value > 990) FROM fact, item WHERE f_item = i_id AND f_id > 10 GROUP BY i_brand, f_item",
            2,
        ),
        (
            "SELECT i_brand + 1, d_year, sum(f_value) FROM fact, item, day WHERE f_item = i_id AND f_item = d_id GROUP BY 1, 2",
            2,
        ),
        (
            "SELECT max(n) FROM (SELECT i_brand, count(*) AS n FROM fact JOIN item ON f_item = i_id GROUP BY i_brand) AS s",
            3,
        ),
        // Not rewritten: arithmetic that could fail for rows without a partner, each row its own group, sums over two
        // inputs, few rows with partners, an outer join, and no group keys. DISTINCT is rewritten to two aggregations
        // by another rule.
        ("SELECT i_brand, max(f_value + 1) FROM fact, item WHERE f_item = i_id GROUP BY i_brand", 1),
        ("SELECT i_brand, sum(f_id / f_value) FROM fact, item WHERE f_item = i_id AND f_value > 0 GROUP BY i_brand", 1),
        ("SELECT i_brand, sum(f_value) FROM fact, item WHERE f_id = i_id GROUP BY i_brand", 1),
        ("SELECT i_brand, sum(f_value * i_id) FROM fact, item WHERE f_item = i_id GROUP BY i_brand", 1),
        (
            "SELECT d_year, sum(f_value) FROM fact, day WHERE f_day = d_id AND d_id < 30 AND d_year + 0 = 0 AND d_id % 2 = 1 GROUP BY d_year",
            1,
        ),
        (
            "SELECT i_brand, count(DISTINCT f_value) FROM fact, item WHERE f_item = i_id AND f_value < 9 GROUP BY i_brand",
            2,
        ),
        ("SELECT i_brand, count(*) FROM fact LEFT JOIN item ON f_item = i_id GROUP BY i_brand", 1),
        ("SELECT count(*) FROM fact JOIN item ON f_item = i_id", 1),
    ] {
        let plan = warehouse.plan(sql, true).await.display_indent().to_string();
        assert_eq!(plan.matches("Aggregate:").count(), aggregates, "{sql}\n{plan}");
        check_same_rows(&warehouse, sql).await;
    }
}
