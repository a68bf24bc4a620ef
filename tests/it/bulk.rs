//! Concurrent bulk changes of rows, also while VACUUM flushes them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_postgres::error::SqlState;

use crate::server::Server;

const ROWS: i64 = 1_000;
const ROUNDS: usize = 8;
const CLIENTS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn no_change_of_many_rows_is_lost() {
    let server = Server::start();
    let client = server.connect().await;
    let made =
        format!("CREATE TABLE t (id int, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) AS g(i)");
    client.batch_execute(&made).await.expect("the table is new");
    let ended = Arc::new(AtomicBool::new(false));
    let mover = tokio::spawn({
        let (client, ended) = (server.connect().await, Arc::clone(&ended));
        async move {
            while !ended.load(Ordering::Relaxed) {
                client.batch_execute("VACUUM t").await.expect("rows can always move");
            }
        }
    });
    let mut writers = Vec::new();
    for number in 0..CLIENTS {
        let client = server.connect().await;
        // One writer changes rows one by one instead, so that both paths meet.
        let at_once = if number == 0 { 1_000_000 } else { 100 };
        client.batch_execute(&format!("SET kiln.direct_load_rows = {at_once}")).await.expect("it is a setting");
        writers.push(tokio::spawn(async move {
            for _ in 0..ROUNDS {
                let changed = client.execute("UPDATE t SET n = n + 1", &[]).await.expect("READ COMMITTED runs again");
                assert_eq!(changed, ROWS.unsigned_abs());
            }
        }));
    }
    for writer in writers {
        writer.await.expect("no writer fails");
    }
    ended.store(true, Ordering::Relaxed);
    mover.await.expect("moving does not fail");
    let row =
        client.query_one("SELECT count(*), count(DISTINCT id), min(n), max(n) FROM t", &[]).await.expect("it reads");
    let all = (CLIENTS * ROUNDS) as i32;
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS, ROWS));
    assert_eq!((row.get::<_, i32>(2), row.get::<_, i32>(3)), (all, all));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sees_an_older_moment_is_told_of_changed_rows() {
    let server = Server::start();
    let (first, second) = (server.connect().await, server.connect().await);
    let made =
        format!("CREATE TABLE t (id int, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, {ROWS}) AS g(i)");
    first.batch_execute(&made).await.expect("the table is new");
    for client in [&first, &second] {
        let begun = "SET kiln.direct_load_rows = 100; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t";
        client.batch_execute(begun).await.expect("both see the same");
    }
    first.batch_execute("UPDATE t SET n = 1; UPDATE t SET n = n + 1; COMMIT").await.expect("it is the first");
    let refused = second.execute("UPDATE t SET n = n + 10 WHERE id = 5", &[]).await.expect_err("it comes second");
    assert_eq!(refused.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE));
    second.batch_execute("ROLLBACK").await.expect("a block ends");

    // A transaction's own bulk changes never conflict with themselves, whoever else writes to the table.
    second
        .batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE t SET n = 3 WHERE id > 1")
        .await
        .expect("nobody else is there");
    first.batch_execute("UPDATE t SET n = 4 WHERE id = 1; INSERT INTO t VALUES (0, 0)").await.expect("another row");
    second.batch_execute("UPDATE t SET n = 5 WHERE id > 1; COMMIT").await.expect("they are its own rows");
    let row = first.query_one("SELECT count(*), sum(n) FROM t", &[]).await.expect("it reads");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (ROWS + 1, 5 * (ROWS - 1) + 4));
}
