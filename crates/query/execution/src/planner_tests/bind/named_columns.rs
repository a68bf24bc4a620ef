use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use super::fixture::Fixture;

/// Returns the columns that the table scans of a planned query have.
fn planned(sql: &str) -> Vec<String> {
    let query = Fixture::small().query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let mut columns = Vec::new();
    let walked = query.plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            columns.extend(scan.source.schema().fields().iter().map(|field| field.name().clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("nothing fails on the way");
    columns
}

#[test]
fn tables_are_planned_with_the_columns_that_are_named() {
    for (sql, columns) in [
        ("SELECT b FROM t", &["b"] as &[&str]),
        ("SELECT 1 FROM t WHERE n > 1 ORDER BY a", &["a", "n"]),
        ("SELECT count(*) FROM t", &["a"]),
        ("SELECT * FROM t", &["a", "b", "n"]),
        ("SELECT t.* FROM t JOIN u USING (a)", &["a", "b", "n", "a"]),
        ("SELECT c FROM t NATURAL JOIN u", &["a", "a", "c"]),
        ("TABLE u", &["a", "c"]),
        ("SELECT x.second FROM t AS x(first, second)", &["b"]),
        ("SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE c = b)", &["a", "c", "a", "b"]),
        ("WITH w AS (SELECT * FROM u) SELECT c FROM w", &["a", "c"]),
        ("SELECT a FROM (SELECT a, n + 1 AS m FROM t) AS s GROUP BY a HAVING max(m) > 0", &["a", "n"]),
        ("SELECT twice FROM v", &["a"]),
    ] {
        assert_eq!(planned(sql), columns, "{sql}");
    }
}
