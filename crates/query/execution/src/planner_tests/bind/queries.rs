use std::sync::Arc;

use types::Condition;

use super::fixture::Fixture;

async fn check(cases: &[(&str, &[&str])]) {
    let fixture = Fixture::small();
    for (sql, expected) in cases {
        let found = fixture.rows(sql).await;
        assert_eq!(found, *expected, "{sql}");
    }
}

#[tokio::test]
async fn plain_queries() {
    check(&[
        ("SELECT 1", &["1"]),
        ("SELECT a, b FROM t WHERE a > 1 ORDER BY a DESC", &["3 three", "2 two"]),
        ("SELECT a FROM t ORDER BY a", &["1", "2", "3", "NULL"]),
        ("SELECT a FROM t ORDER BY a DESC", &["NULL", "3", "2", "1"]),
        ("SELECT count(*), count(a), sum(a), avg(a) FROM t", &["4 3 6 2.0000000000000000"]),
        ("SELECT a, twice FROM v ORDER BY 1", &["1 2", "2 4"]),
        ("SELECT nspname FROM pg_namespace WHERE nspname = 'public'", &["public"]),
        (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1",
            &["e", "t", "u", "v"],
        ),
        ("SELECT 7 / 2, 7 / 2.0, 7 % 2, -7 / 2", &["3 3.5000000000000000 1 -3"]),
        ("SELECT 'a' || 1, 'a' || NULL", &["a1 NULL"]),
    ])
    .await;
}

#[tokio::test]
async fn joins() {
    check(&[
        ("SELECT t.a, c FROM t JOIN u ON t.a = u.a ORDER BY c", &["2 p", "2 q"]),
        (
            "SELECT a, b, c FROM t FULL JOIN u USING (a) ORDER BY a, c",
            &["1 one NULL", "2 two p", "2 two q", "3 three NULL", "4 NULL r", "NULL none NULL"],
        ),
        ("SELECT a, c FROM t RIGHT JOIN u USING (a) ORDER BY c", &["2 p", "2 q", "4 r"]),
        ("SELECT a, c FROM t NATURAL JOIN u ORDER BY c", &["2 p", "2 q"]),
        ("SELECT x.a, y.a FROM t x, t y WHERE x.a = y.a + 1 ORDER BY 1", &["2 1", "3 2"]),
        ("SELECT b FROM t LEFT JOIN u ON t.a = u.a WHERE c IS NULL ORDER BY b", &["none", "one", "three"]),
        ("SELECT j.b FROM (t JOIN u USING (a)) AS j ORDER BY j.c DESC LIMIT 1", &["two"]),
    ])
    .await;
}

#[tokio::test]
async fn output_names_in_group_by_and_order_by() {
    check(&[
        ("SELECT a % 2 AS k, count(*) FROM t GROUP BY k ORDER BY k", &["0 1", "1 2", "NULL 1"]),
        // GROUP BY prefers input columns over output names, ORDER BY the reverse.
        ("SELECT -a AS a FROM t WHERE a IS NOT NULL ORDER BY a", &["-3", "-2", "-1"]),
        ("SELECT -a AS a FROM t WHERE a IS NOT NULL ORDER BY a + 0", &["-1", "-2", "-3"]),
        ("SELECT count(*) FROM t ORDER BY count", &["4"]),
        ("SELECT a AS x, a AS x FROM t WHERE a = 1 ORDER BY x", &["1 1"]),
        ("SELECT 5 AS k, count(*) FROM t GROUP BY 1", &["5 4"]),
        ("SELECT a % 2, a % 2, count(*) FROM t GROUP BY 1, 2 ORDER BY 1", &["0 0 1", "1 1 2", "NULL NULL 1"]),
        ("SELECT b FROM t GROUP BY b, a ORDER BY a", &["one", "two", "three", "none"]),
        ("SELECT DISTINCT a + 1 FROM t ORDER BY a + 1", &["2", "3", "4", "NULL"]),
        ("SELECT a FROM t GROUP BY a HAVING count(*) > 0 ORDER BY sum(n) DESC NULLS LAST LIMIT 1", &["2"]),
    ])
    .await;
}

#[tokio::test]
async fn subqueries() {
    check(&[
        ("SELECT b FROM t WHERE EXISTS (SELECT FROM u WHERE u.a = t.a)", &["two"]),
        ("SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", &["two"]),
        ("SELECT b FROM t WHERE a NOT IN (SELECT a FROM u) ORDER BY b", &["one", "three"]),
        (
            "SELECT b, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t ORDER BY b",
            &["none 0", "one 0", "three 0", "two 2"],
        ),
        (
            "SELECT b, (SELECT c FROM u WHERE u.a = t.a ORDER BY c DESC LIMIT 1) FROM t ORDER BY b",
            &["none NULL", "one NULL", "three NULL", "two q"],
        ),
        (
            "SELECT (SELECT c FROM u WHERE u.a = t.a) FROM t",
            &["CardinalityViolation: more than one row returned by a subquery used as an expression"],
        ),
        ("SELECT a IN (SELECT a FROM u) FROM t ORDER BY t.a", &["false", "true", "false", "NULL"]),
        ("SELECT ARRAY(SELECT c FROM u ORDER BY c)", &["[p, q, r]"]),
        ("SELECT a FROM t WHERE a > ALL (SELECT 1)", &["2", "3"]),
        ("SELECT a FROM t WHERE a = ANY (SELECT a FROM u)", &["2"]),
        ("SELECT t.a, s.c FROM t, LATERAL (SELECT c FROM u WHERE u.a = t.a) s ORDER BY 2", &["2 p", "2 q"]),
        ("SELECT b FROM t t1 WHERE a = (SELECT max(a) FROM t WHERE t.b <> t1.b)", &[]),
    ])
    .await;
}

#[tokio::test]
async fn with_queries() {
    check(&[
        ("WITH x AS (SELECT a FROM t WHERE a > 1) SELECT * FROM x ORDER BY a", &["2", "3"]),
        ("WITH x (p, q) AS (SELECT a, b FROM t) SELECT q FROM x WHERE p = 1", &["one"]),
        ("WITH t AS (SELECT a + 10 AS a FROM t) SELECT a FROM t ORDER BY a LIMIT 1", &["11"]),
        ("WITH x AS (SELECT 1 AS i) SELECT * FROM (WITH x AS (SELECT 2 AS i) SELECT * FROM x) y, x", &["2 1"]),
        ("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n ORDER BY i", &["1", "2", "3"]),
        ("WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i % 2 FROM n) SELECT count(*) FROM n", &["1"]),
        ("WITH RECURSIVE n AS (SELECT 1 AS i, 'a' AS s UNION ALL SELECT i + 1, s || 'a' FROM n WHERE i < 3) SELECT s FROM n ORDER BY i", &["a", "aa", "aaa"]),
    ])
    .await;
}

#[tokio::test]
async fn set_operations() {
    check(&[
        ("SELECT a FROM t UNION SELECT a FROM u ORDER BY a", &["1", "2", "3", "4", "NULL"]),
        ("SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY 1 LIMIT 3", &["1", "2", "2"]),
        ("SELECT a FROM t INTERSECT SELECT a FROM u", &["2"]),
        ("SELECT a FROM t EXCEPT SELECT a FROM u ORDER BY a", &["1", "3", "NULL"]),
        ("SELECT a FROM u INTERSECT ALL SELECT a FROM t", &["2"]),
        ("SELECT a FROM u EXCEPT ALL SELECT a FROM t ORDER BY a", &["2", "4"]),
        ("SELECT 1 UNION SELECT 2.5 ORDER BY 1", &["1.0", "2.5"]),
        ("SELECT NULL UNION SELECT 1 ORDER BY 1", &["1", "NULL"]),
        ("VALUES (1, 'a'), (2, NULL) ORDER BY column1 DESC", &["2 NULL", "1 a"]),
        (
            "(SELECT a FROM t ORDER BY a LIMIT 1) UNION ALL (SELECT a FROM u ORDER BY a DESC LIMIT 1) ORDER BY 1",
            &["1", "4"],
        ),
        ("SELECT a, a FROM t WHERE a = 1 UNION ALL SELECT a, 9 FROM u WHERE a = 4 ORDER BY 1", &["1 1", "4 9"]),
    ])
    .await;
}

#[tokio::test]
async fn windows_and_grouping_sets() {
    check(&[
        ("SELECT a, row_number() OVER (ORDER BY a DESC) FROM t WHERE a IS NOT NULL ORDER BY a", &["1 3", "2 2", "3 1"]),
        (
            "SELECT a, sum(a) OVER w FROM t WHERE a IS NOT NULL WINDOW w AS (ORDER BY a) ORDER BY a",
            &["1 1", "2 3", "3 6"],
        ),
        (
            "SELECT a, count(*) OVER (w ORDER BY a) FROM t WHERE a < 4 WINDOW w AS (PARTITION BY a % 2) ORDER BY a",
            &["1 1", "2 1", "3 2"],
        ),
        (
            "SELECT a % 2 AS k, sum(a), rank() OVER (ORDER BY sum(a)) FROM t WHERE a < 9 GROUP BY k ORDER BY k",
            &["0 2 1", "1 4 2"],
        ),
        (
            "SELECT b, a, count(*) FROM t WHERE a = 1 GROUP BY GROUPING SETS ((b), (a), ()) ORDER BY b, a",
            &["one NULL 1", "NULL 1 1", "NULL NULL 1"],
        ),
        ("SELECT DISTINCT ON (a) a, c FROM u ORDER BY a, c DESC", &["2 q", "4 r"]),
        ("SELECT count(*) FILTER (WHERE a > 1) FROM t", &["2"]),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t", &["2.0"]),
    ])
    .await;
}

#[tokio::test]
async fn set_returning_functions() {
    check(&[
        ("SELECT * FROM generate_series(1, 3)", &["1", "2", "3"]),
        ("SELECT i * 2 FROM generate_series(1, 5, 2) AS g (i)", &["2", "6", "10"]),
        ("SELECT generate_series(1, 2)", &["1", "2"]),
        ("SELECT unnest(ARRAY['x', 'y'])", &["x", "y"]),
        ("SELECT a, n FROM unnest(ARRAY[7, 8]) WITH ORDINALITY AS x (a, n)", &["7 1", "8 2"]),
        ("SELECT a, i FROM t, generate_series(1, t.a) AS i WHERE a < 3 ORDER BY 1, 2", &["1 1", "2 1", "2 2"]),
    ])
    .await;
}

#[tokio::test]
async fn limits() {
    check(&[
        ("SELECT a FROM t ORDER BY a LIMIT 1 OFFSET 1", &["2"]),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 2 ROWS ONLY", &["1", "2"]),
        ("SELECT a FROM t ORDER BY a LIMIT NULL OFFSET 3", &["NULL"]),
        ("SELECT a FROM t ORDER BY a LIMIT ALL OFFSET 3", &["NULL"]),
        ("SELECT a FROM t LIMIT -1", &["InvalidRowCountInLimit: LIMIT must not be negative"]),
        ("SELECT a FROM t ORDER BY a LIMIT (SELECT 1)", &["1"]),
        ("SELECT a FROM t ORDER BY a LIMIT 1 + 1", &["1", "2"]),
    ])
    .await;
}

/// Returns a query with a WITH list in which each query reads the previous one twice, starting with one row.
fn doubled(times: usize) -> String {
    let doubled = |number: usize| format!(", c{number} AS (SELECT x.n FROM c{0} x, c{0} y)", number - 1);
    let list: String = (1..=times).map(doubled).collect();
    format!("WITH c0 AS (SELECT 1 AS n){list} SELECT n FROM c{times}")
}

#[tokio::test]
async fn with_queries_that_double_are_answered_or_refused() {
    check(&[(&doubled(8), &["1"])]).await;
    for times in [30, 300] {
        let refused = Fixture::small().query(&doubled(times)).map(|_| ()).unwrap_err();
        assert_eq!(refused.condition, Condition::StatementTooComplex);
    }
}

#[tokio::test]
async fn coalesce_in_coalesce_copies_nothing() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("SELECT {}a{} FROM t", open.repeat(depth), close.repeat(depth));
    check(&[(&nested("coalesce(", ", 7)", 40), &["1", "2", "3", "7"])]).await;
    let joined: String =
        (0..30).map(|number| format!(" FULL JOIN (SELECT {number} AS a) q{number} USING (a)")).collect();
    check(&[(&format!("SELECT count(*) FROM t{joined}"), &["31"])]).await;
    check(&[(&nested("coalesce(abs(", "), 7)", 40), &["1", "2", "3", "7"])]).await;
    check(&[(&nested("coalesce(abs(", "), 6 / a)", 6), &["1", "2", "3", "NULL"])]).await;
    let refused = Fixture::small().query(&nested("coalesce(abs(", "), 6 / a)", 60)).map(|_| ()).unwrap_err();
    assert_eq!(refused.condition, Condition::StatementTooComplex);
}

#[tokio::test]
async fn coalesce_in_coalesce_is_planned_as_one() {
    let nested = format!("{}NULL{}", "coalesce(".repeat(40), ", 10 / a)".repeat(40));
    check(&[
        (&format!("SELECT {nested} FROM t WHERE a IS NOT NULL ORDER BY a"), &["10", "5", "3"]),
        (&format!("SELECT a FROM t WHERE CASE WHEN {nested} > 4 THEN a > 1 ELSE a > 2 END ORDER BY a"), &["2", "3"]),
    ])
    .await;
}

/// A condition pushed below each query contains all of their computations. Its size used to grow quadratically, or
/// exponentially.
#[tokio::test]
async fn queries_that_each_compute_and_filter_are_answered() {
    let chain = |computed: &str, condition: &str, depth: usize| {
        let query = |at: usize| format!(", c{at} AS (SELECT {computed} AS a, b FROM c{} WHERE {condition})", at - 1);
        let queries: String = (1..=depth).map(query).collect();
        format!("WITH c0 AS (SELECT a, b FROM t){queries} SELECT a, b FROM c{depth} WHERE b <> 'two' ORDER BY a")
    };
    check(&[
        (&chain("a + 1", "a > 0", 300), &["301 one", "303 three"]),
        (&chain("a - a", "a < 9", 60), &["0 one", "0 three"]),
        (&chain("CASE WHEN a > 5 THEN a ELSE a + 2 END", "a <> 4", 60), &["7 one", "7 three"]),
        (&chain("a - a", "a < 9 GROUP BY a - a, b HAVING count(*) > 0", 40), &["0 one", "0 three"]),
        (&chain("a - a", "a < 9 AND random() >= 0", 40), &["0 one", "0 three"]),
    ])
    .await;
}

/// Deeper nesting of joins than the operations that the runtime's cooperative budget allows a task: unpartitioned plans
/// used to hang.
#[tokio::test]
async fn joins_over_joins_in_one_part_are_answered() {
    let mut fixture = Fixture::small();
    let context = Arc::make_mut(&mut fixture.context);
    Arc::make_mut(&mut context.settings).set("kiln.target_partitions", "1").expect("it is a setting");
    let cases = format!(
        "SELECT a FROM t WHERE {}a > 1{} ORDER BY a",
        "CASE WHEN ".repeat(20),
        " THEN a IN (SELECT a FROM u) ELSE a NOT IN (SELECT 7 FROM u) END".repeat(20)
    );
    assert_eq!(fixture.rows(&cases).await, ["2", "3"]);
    let joins: String = (1..200).map(|at| format!(" LEFT JOIN e AS e{at} ON t.a + e{at}.a > {at}")).collect();
    assert_eq!(fixture.rows(&format!("SELECT t.a FROM t{joins} ORDER BY t.a")).await, ["1", "2", "3", "NULL"]);
}

#[tokio::test]
async fn case_in_case_is_answered_and_functions_between_are_bounded() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!("SELECT {}a{} FROM t WHERE a IS NOT NULL", open.repeat(depth), close.repeat(depth))
    };
    check(&[
        (&nested("CASE WHEN a > 0 THEN ", " ELSE 0 END", 60), &["1", "2", "3"]),
        (&nested("abs(CASE WHEN a > 0 THEN ", " ELSE 0 END)", 8), &["1", "2", "3"]),
        (&nested("CASE WHEN CASE WHEN ", " > 2 THEN a > 0 ELSE a < 2 END THEN a ELSE 0 END", 1), &["1", "0", "3"]),
        (
            &format!(
                "SELECT {}a > 1{} FROM t WHERE a > 0 ORDER BY a",
                "CASE WHEN ".repeat(40),
                " THEN a > 0 ELSE a < 0 END".repeat(40)
            ),
            &["false", "true", "true"],
        ),
        (&nested("CASE WHEN CASE WHEN ", " > 0 THEN a > 0 ELSE a < 5 END THEN a ELSE 0 END", 1), &["1", "2", "3"]),
        (&nested("CASE WHEN abs(", ") > 0 THEN a ELSE 0 END", 8), &["1", "2", "3"]),
    ])
    .await;
    // Expressions that are not copied do not count.
    let chain = |result: &str, last: &str| {
        let cases: String = (10..20).map(|number| format!("CASE WHEN a = {number} THEN {result} ELSE ")).collect();
        format!("{cases}{last}{}", " END".repeat(10))
    };
    let divisions: Vec<String> = (1..12).map(|number| format!("10 / (a + {number}) >= 0")).collect();
    let divided = |condition: &str| {
        format!("SELECT CASE WHEN {condition} THEN 10 / a > 3 ELSE false END FROM t WHERE a IS NOT NULL ORDER BY a")
    };
    check(&[
        (&divided(&format!("{} > 2", chain("10", "3"))), &["true", "true", "false"]),
        (&divided(&chain("a > 7", "a > 1")), &["false", "true", "false"]),
        (&divided(&divisions.join(" AND ")), &["true", "true", "false"]),
        // Branches may contain subqueries.
        (
            &format!(
                "SELECT a FROM t WHERE {}a > 1{} ORDER BY a",
                "CASE WHEN ".repeat(12),
                " THEN a IN (SELECT a FROM u) ELSE a NOT IN (SELECT 7 FROM u) END".repeat(12)
            ),
            &["2", "3"],
        ),
    ])
    .await;
    let failing = |depth: usize| {
        format!(
            "SELECT {}a > 1{} FROM t",
            "CASE WHEN ".repeat(depth),
            " THEN 6 / a > 2 ELSE 6 / a < 5 END".repeat(depth)
        )
    };
    check(&[(&format!("{} WHERE a IS NOT NULL ORDER BY a", failing(8)), &["false", "true", "true"])]).await;
    let refused = Fixture::small().query(&failing(40)).map(|_| ()).unwrap_err();
    assert_eq!(refused.condition, Condition::StatementTooComplex);
    for (open, close) in [
        ("abs(CASE WHEN a > 0 THEN ", " ELSE 0 END)"),
        ("CASE WHEN abs(", ") > 0 THEN a ELSE 0 END"),
        ("CASE WHEN ", " > 0 THEN a ELSE 0 END"),
        ("CASE WHEN (", ") IS NOT NULL THEN a END"),
        ("CASE 1 WHEN ", " THEN a END"),
        ("CASE WHEN (1 = ", ") IS UNKNOWN THEN a END"),
        ("CASE WHEN ", " BETWEEN 0 AND 1 THEN a END"),
        ("CASE WHEN 'x' ILIKE (", ")::text THEN a END"),
    ] {
        let refused = Fixture::small().query(&nested(open, close, 40)).map(|_| ()).unwrap_err();
        assert_eq!(refused.condition, Condition::StatementTooComplex, "{open}");
    }
}

#[tokio::test]
async fn a_subquery_that_any_compares_with_is_planned_once() {
    let nested = |open: &str, depth: usize| format!("{}SELECT 2{}", open.repeat(depth), ")".repeat(depth));
    check(&[
        (&nested("SELECT a FROM t WHERE a = ANY (", 40), &["2"]),
        ("SELECT a FROM t WHERE a <> ALL (SELECT 2) ORDER BY a", &["1", "3"]),
        ("SELECT a FROM t WHERE a <> ALL (SELECT a FROM u) ORDER BY a", &["1", "3"]),
        ("SELECT a FROM t WHERE a <> ALL (SELECT a FROM t)", &[]),
        (
            "SELECT a = SOME (SELECT 2), a <> ALL (SELECT 2) FROM t ORDER BY a",
            &["false true", "true false", "false true", "NULL NULL"],
        ),
        (&nested("SELECT a FROM t WHERE a <= ANY (", 3), &["1", "2"]),
    ])
    .await;
    let refused = Fixture::small().query(&nested("SELECT a FROM t WHERE a <= ANY (", 12)).map(|_| ()).unwrap_err();
    assert_eq!(refused.condition, Condition::StatementTooComplex);
}

#[tokio::test]
async fn long_sums_and_nested_cases_of_everyday_are_answered() {
    let sum = |terms: usize| vec!["a"; terms].join(" + ");
    let whens = |count: usize, then: &str| {
        (0..count).map(|number| format!("WHEN b = 'x{number}' THEN {then}")).collect::<Vec<_>>().join(" ")
    };
    let in_else = (0..6).fold("a".to_owned(), |inner, _| format!("abs(CASE {} ELSE {inner} END)", whens(40, "7")));
    for sql in [
        format!("SELECT a, CASE WHEN {} > 0 THEN 1 ELSE 0 END FROM t", sum(300)),
        format!("SELECT {} FROM t", vec![format!("CASE WHEN {} > 0 THEN 1 END", sum(50)); 50].join(", ")),
        format!("SELECT CASE {} ELSE 'none' END FROM t", whens(1_000, "upper(b)")),
        format!("SELECT {in_else} FROM t"),
    ] {
        Fixture::small().query(&sql).map(|_| ()).unwrap_or_else(|error| panic!("{error}: {sql}"));
    }
}

#[tokio::test]
async fn conditions_that_may_fail_are_copied_as_often_as_there_are() {
    let conditions = (1..=40).map(|number| format!("{number} / a >= 0")).collect::<Vec<_>>();
    check(&[
        (&format!("SELECT a FROM t WHERE {} ORDER BY a", conditions.join(" AND ")), &["1", "2", "3"]),
        (&format!("SELECT count(*) FROM t WHERE a <> 1 AND {}", conditions.join(" AND ")), &["2"]),
        (&format!("SELECT a FROM t WHERE a = 1 AND NOT ({})", conditions.join(" OR ")), &[]),
        // The condition evaluated before guards each of the others.
        ("SELECT a FROM t WHERE a <> 1 AND 6 / (a - 1) > 3 AND 6 / (a - 1) < 9 AND 9 / (a - 1) > 0", &["2"]),
        ("SELECT a FROM t WHERE a = 1 OR 6 / (a - 1) > 5 OR 6 / (a - 1) > 7 ORDER BY a", &["1", "2"]),
    ])
    .await;
}
