//! Tests of cached plans.

use std::sync::Arc;

use binder::{QueryPlan, StatementPlan};
use session_context::StatementContext;

use super::write::{Fixture, run};

const T: &str = "CREATE TABLE t (id int, name text, d date)";

fn query(fixture: &Fixture, sql: &str, context: &Arc<StatementContext>) -> QueryPlan {
    let parsed = fixture.planner.parse(sql).expect("it is SQL").remove(0);
    match fixture.planner.plan(&parsed, &[], context).expect("it can be planned") {
        StatementPlan::Query(query) => query,
        other => panic!("{sql} is planned as {other:?}"),
    }
}

#[tokio::test]
async fn a_kept_plan_gives_its_rows_again() {
    let fixture = Fixture::of(T);
    fixture.fill("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'b', NULL)").await;
    for sql in [
        "SELECT count(*) FROM t WHERE name = 'b'",
        "WITH w AS MATERIALIZED (SELECT name, count(*) AS n FROM t GROUP BY name) SELECT count(*) FROM w a, w b WHERE a.n >= b.n",
        "SELECT id FROM t WHERE id = (SELECT max(id) FROM t) LIMIT (SELECT 1)",
        "SELECT (SELECT u.id FROM t u WHERE u.id < t.id ORDER BY u.id DESC LIMIT 1) FROM t",
    ] {
        let first = run(&query(&fixture, sql, &fixture.context)).await.expect("it has rows");
        for _ in 0..2 {
            let again = query(&fixture, sql, &fixture.context);
            assert!(again.shares_optimized_plan(&query(&fixture, sql, &fixture.context)), "{sql}");
            assert_eq!(run(&again).await.expect("it has rows"), first, "{sql}");
        }
    }
}

#[tokio::test]
async fn a_run_leaves_no_memory_behind() {
    let fixture = Fixture::of(T);
    fixture.fill("INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', NULL), (3, 'b', NULL)").await;
    for sql in [
        "WITH w AS MATERIALIZED (SELECT id FROM t) SELECT count(*) FROM w a, w b",
        // A correlated subquery inside the shared query, and one that reads it.
        "WITH w AS MATERIALIZED (SELECT id, (SELECT u.id FROM t u WHERE u.id > t.id ORDER BY u.id LIMIT 1) AS next FROM t) \
         SELECT count(*), max((SELECT x.next FROM w x WHERE x.id < a.id ORDER BY x.id LIMIT 1)) FROM w a, w b",
    ] {
        let plan = query(&fixture, sql, &fixture.context);
        run(&plan).await.expect("it has rows");
        assert_eq!(plan.state.runtime_env().memory_pool.reserved(), 0, "{sql}");
    }
}
