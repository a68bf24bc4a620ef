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
        // GROUP BY means the column before the output, ORDER BY the output before the column.
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
