//! Temporary tables: visible to their session only, and dropped with it or after a crash.

use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::server::Server;

const SCHEMAS: &str = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg_temp%'";

#[tokio::test(flavor = "multi_thread")]
async fn a_session_sees_its_own_and_takes_them_along() {
    let server = Server::start();
    let (one, two) = (server.connect().await, server.connect().await);
    for (client, rows) in [(&one, 2), (&two, 3)] {
        let made = format!("CREATE TEMP TABLE t AS SELECT i FROM generate_series(1, {rows}) AS g (i)");
        client.batch_execute(&made).await.expect("both may have the name");
        assert_eq!(count(client, "SELECT count(*) FROM t").await, rows);
    }
    let schema: String = one
        .query_one("SELECT nspname::text FROM pg_namespace WHERE oid = pg_my_temp_schema()", &[])
        .await
        .expect("it has a schema")
        .get(0);
    let refused = two.query(&format!("SELECT * FROM {schema}.t"), &[]).await.expect_err("it is another's");
    assert_eq!(refused.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED));
    drop(one);
    let mut left = 2;
    for _ in 0..100 {
        left = count(&two, SCHEMAS).await;
        if left == 1 {
            break;
        }
        types::Clock::sleep(&types::SystemClock::new(), Duration::from_millis(50)).await;
    }
    assert_eq!(left, 1, "what it made is dropped when a session ends");
    assert_eq!(count(&two, "SELECT count(*) FROM t").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_is_dropped_by_the_start() {
    let folder = TempDir::with_prefix("kiln-temporary-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE kept (a int); CREATE TEMP TABLE t (id serial, a int); INSERT INTO t (a) VALUES (1)",
        )
        .await
        .expect("the statements run");
    server.kill();
    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    assert_eq!(count(&client, SCHEMAS).await, 0);
    assert_eq!(count(&client, "SELECT count(*) FROM pg_class WHERE relname IN ('t', 't_id_seq')").await, 0);
    assert_eq!(count(&client, "SELECT count(*) FROM kept").await, 0);
    client.batch_execute("CREATE TEMP TABLE t (a int)").await.expect("the name is free");
}

async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.expect("it answers").get(0)
}
