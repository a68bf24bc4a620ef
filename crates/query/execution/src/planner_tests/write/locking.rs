//! Tests of SELECT … FOR UPDATE and the other locking clauses.

use binder::{QueryPlan, StatementPlan};
use datafusion::common::ScalarValue;
use types::{Condition, LockMode, LockWait};

use super::{Fixture, run, shown};

impl Fixture {
    fn query(&self, sql: &str) -> QueryPlan {
        match self.plan(sql).unwrap() {
            StatementPlan::Query(query) => query,
            other => panic!("{sql} is planned as {other:?}"),
        }
    }
}

async fn fixture() -> Fixture {
    let fixture =
        Fixture::of("CREATE TABLE t (id int, name text); CREATE TABLE u (id int, w text); CREATE VIEW v AS TABLE t");
    fixture.fill("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')").await;
    fixture.fill("INSERT INTO u VALUES (2, 'x'), (3, 'y')").await;
    fixture
}

#[tokio::test]
async fn rows_are_followed_by_where_they_are() {
    let fixture = fixture().await;
    let query =
        fixture.query("SELECT name AS n FROM t ORDER BY id DESC LIMIT 1 OFFSET $1 FOR NO KEY UPDATE SKIP LOCKED");
    assert_eq!(query.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["n"]);
    let query = query.with_parameters(vec![ScalarValue::Int64(Some(2))]).unwrap();
    let rows: Vec<String> = run(&query).await.unwrap().iter().flat_map(shown).collect();
    assert_eq!(rows, ["c|3|-1", "b|2|-1", "a|1|-1"]);
    assert_eq!(query.locked_limit.counts().unwrap(), (2, Some(1)));
    let [lock] = query.locks.as_slice() else { panic!("one table is locked: {:?}", query.locks) };
    assert_eq!((lock.mode, lock.wait, lock.column), (LockMode::NoKeyUpdate, LockWait::SkipLocked, 1));
    assert!(fixture.query("SELECT 1 FOR UPDATE").locks.is_empty());
}

#[tokio::test]
async fn every_table_that_is_meant_is_locked_once_in_its_strongest_mode() {
    let fixture = fixture().await;
    let sql = "SELECT x.id, w FROM (t x JOIN u ON x.id = u.id), (SELECT 1) s ORDER BY 1 \
               FOR KEY SHARE OF x, u FOR UPDATE OF x NOWAIT";
    let query = fixture.query(sql);
    let locks: Vec<_> = query.locks.iter().map(|it| (it.table.name.as_str(), it.mode, it.wait, it.column)).collect();
    let expected = [("t", LockMode::Update, LockWait::NoWait, 2), ("u", LockMode::KeyShare, LockWait::Block, 4)];
    assert_eq!(locks, expected);
    let rows: Vec<String> = run(&query).await.unwrap().iter().flat_map(shown).collect();
    assert_eq!(rows, ["2|x|2|-1|1|-1", "3|y|3|-1|2|-1"]);
}

#[tokio::test]
async fn rows_that_are_none_of_a_table_are_not_locked() {
    let fixture = fixture().await;
    for (sql, message) in [
        ("SELECT id FROM t GROUP BY id FOR UPDATE", "FOR UPDATE is not allowed with GROUP BY clause"),
        ("SELECT DISTINCT id FROM t FOR SHARE", "FOR SHARE is not allowed with DISTINCT clause"),
        ("SELECT count(*) FROM t FOR UPDATE", "FOR UPDATE is not allowed with aggregate functions"),
        ("SELECT rank() OVER () FROM t FOR UPDATE", "FOR UPDATE is not allowed with window functions"),
        ("TABLE t UNION TABLE u FOR KEY SHARE", "FOR KEY SHARE is not allowed with UNION/INTERSECT/EXCEPT"),
        ("VALUES (1) FOR UPDATE", "FOR UPDATE cannot be applied to VALUES"),
        (
            "SELECT generate_series(1, id) FROM t FOR UPDATE",
            "FOR UPDATE is not allowed with set-returning functions in the target list",
        ),
        ("SELECT 1 FROM t FOR UPDATE OF u", "relation \"u\" in FOR UPDATE clause not found in FROM clause"),
        ("SELECT 1 FROM v FOR UPDATE", "FOR UPDATE of a view is not supported"),
        ("SELECT 1 FROM (TABLE t) s FOR UPDATE", "FOR UPDATE of a subquery or a function is not supported"),
        ("WITH c AS (TABLE t) SELECT 1 FROM c FOR UPDATE OF c", "FOR UPDATE cannot be applied to a WITH query"),
        (
            "CREATE TABLE x AS SELECT id FROM t FOR UPDATE",
            "FOR UPDATE in a query other than a top-level SELECT is not supported",
        ),
        (
            "INSERT INTO t SELECT id FROM u FOR UPDATE",
            "FOR UPDATE in a query other than a top-level SELECT is not supported",
        ),
        (
            "CREATE VIEW x AS SELECT id FROM t FOR UPDATE",
            "FOR UPDATE in a query other than a top-level SELECT is not supported",
        ),
        (
            "COPY (SELECT id FROM t FOR UPDATE) TO STDOUT",
            "FOR UPDATE in a query other than a top-level SELECT is not supported",
        ),
        (
            "DECLARE c CURSOR FOR SELECT id FROM t FOR UPDATE",
            "FOR UPDATE in a query other than a top-level SELECT is not supported",
        ),
    ] {
        assert_eq!(fixture.plan(sql).unwrap_err().message, message, "{sql}");
    }
    let negative = fixture.query("SELECT id FROM t LIMIT $1 FOR UPDATE");
    let negative = negative.with_parameters(vec![ScalarValue::Int64(Some(-1))]).unwrap();
    assert_eq!(negative.locked_limit.counts().unwrap_err().condition, Condition::InvalidRowCountInLimit);
}
