use binder::StatementPlan;

use super::fixture::Fixture;

fn needs_worker(sql: &str) -> bool {
    let query = Fixture::small().query(sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    StatementPlan::Query(query).needs_worker()
}

#[test]
fn what_reads_or_makes_rows_needs_a_worker() {
    for sql in [
        "SELECT a FROM t",
        "SELECT twice FROM v",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM u)",
        "SELECT relname FROM pg_class JOIN t ON a = relpages",
        "SELECT count(*) FROM generate_series(1, 10) AS g(i)",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
    ] {
        assert!(needs_worker(sql), "{sql}");
    }
}

#[test]
fn what_the_server_knows_needs_none() {
    for sql in [
        "SELECT 1 + 1",
        "SELECT now()",
        "VALUES (1), (2)",
        "SELECT relname FROM pg_class ORDER BY 1",
        "SELECT name, (SELECT count(*) FROM sys.worker) FROM sys.cluster",
        "SELECT n.nspname, i FROM pg_namespace AS n, generate_series(1, 2) AS g(i)",
        "SELECT table_name FROM information_schema.tables",
    ] {
        assert!(!needs_worker(sql), "{sql}");
    }
}
