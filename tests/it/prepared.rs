//! Prepared statements whose tables change while they wait: no client gets rows with other columns than described to
//! it.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::Server;

/// Statements that use a scan or the primary key.
const QUERIES: [&str; 5] = [
    "SELECT * FROM t WHERE b > 0 FOR UPDATE",
    "SELECT * FROM t WHERE a = 1 FOR UPDATE",
    "UPDATE t SET b = b + 1 WHERE b > 0 RETURNING *",
    "UPDATE t SET b = b + 1 WHERE a = 1 RETURNING *",
    "DELETE FROM t WHERE a = 1 RETURNING *",
];
/// Time within which the statement waits for the change; otherwise it sees the change at bind and must be refused as
/// well.
const HEAD_START: Duration = Duration::from_millis(300);

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_waits_for_a_definition_gives_no_other_columns() {
    let server = Server::start();
    let (definer, client) = (server.connect().await, server.connect().await);
    definer.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b int)").await.expect("a table");
    for (number, query) in QUERIES.iter().enumerate() {
        definer.batch_execute("DELETE FROM t; INSERT INTO t (a, b) VALUES (1, 1), (2, 2)").await.expect("rows");
        let statement = client.prepare(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let change = format!("BEGIN; ALTER TABLE t ADD COLUMN more_{number} int; UPDATE t SET b = b + 1");
        definer.batch_execute(&change).await.expect("a change");
        let end = async {
            SystemClock::new().sleep(HEAD_START).await;
            definer.batch_execute("COMMIT").await.expect("the change is committed");
        };
        let (answer, ()) = tokio::join!(client.query(&statement, &[]), end);
        let error = answer.err().unwrap_or_else(|| panic!("{query}: gave rows of another form"));
        assert_eq!(error.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "{query}: {error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_gives_rows_in_parts_is_counted_as_what_it_is() {
    let server = Server::start();
    let mut client = server.connect().await;
    client.batch_execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2), (3)").await.expect("a table");
    let counted = async |kind: &str| {
        let metrics = crate::lifecycle::get(server.http_port, "/metrics");
        let line = format!("kiln_statements_total{{kind=\"{kind}\",outcome=\"Done\"}} ");
        let found = metrics.lines().find_map(|line_of| line_of.strip_prefix(&line));
        found.map_or(0.0, |number| number.parse::<f64>().expect("a number"))
    };
    let before = [counted("Query").await, counted("Write").await];
    let transaction = client.transaction().await.expect("a transaction");
    let portal = transaction.bind("UPDATE t SET a = a + 1 RETURNING a", &[]).await.expect("a portal");
    for rows in [2, 1] {
        assert_eq!(transaction.query_portal(&portal, 2).await.expect("rows").len(), rows);
    }
    transaction.commit().await.expect("the end");
    assert_eq!([counted("Query").await, counted("Write").await], [before[0], before[1] + 2.0]);
}
