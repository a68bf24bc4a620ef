//! Prepared statements whose tables change while they wait: no client gets rows of other columns than it was told of.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::Server;

const QUERIES: [&str; 3] = [
    "SELECT * FROM t WHERE b > 0 FOR UPDATE",
    "UPDATE t SET b = b + 1 WHERE b > 0 RETURNING *",
    "DELETE FROM t WHERE a = 1 RETURNING *",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_waits_for_a_definition_gives_no_other_columns() {
    let server = Server::start();
    let (definer, client, watcher) = (server.connect().await, server.connect().await, server.connect().await);
    definer.batch_execute("CREATE TABLE t (a int, b int)").await.expect("a table");
    let waiting = watcher.prepare("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = $1");
    let waiting = waiting.await.expect("a query");
    for (number, query) in QUERIES.iter().enumerate() {
        definer.batch_execute("DELETE FROM t; INSERT INTO t (a, b) VALUES (1, 1), (2, 2)").await.expect("rows");
        let statement = client.prepare(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let change = format!("BEGIN; ALTER TABLE t ADD COLUMN more_{number} int; UPDATE t SET b = b + 1");
        definer.batch_execute(&change).await.expect("a change");
        let end = async {
            while watcher.query_one(&waiting, &[query]).await.expect("sessions").get::<_, i64>(0) == 0 {
                SystemClock::new().sleep(Duration::from_millis(10)).await;
            }
            definer.batch_execute("COMMIT").await.expect("the change is committed");
        };
        let (answer, ()) = tokio::join!(client.query(&statement, &[]), end);
        let error = answer.err().unwrap_or_else(|| panic!("{query}: gave rows of another form"));
        assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{query}: {error:?}");
    }
}
