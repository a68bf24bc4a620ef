//! Correlated subqueries with several tasks each, in more sessions than threads: all complete, and no other statement
//! waits.

use std::time::Duration;

use futures::future::join_all;
use types::{Clock, SystemClock};

use crate::server::Server;

const SESSIONS: usize = 200;

/// Time after which a statement is considered deadlocked; generous for slow machines.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

const TABLES: &str = "CREATE TABLE big AS SELECT g AS id FROM generate_series(1, 100000) AS g; \
                      CREATE TABLE a (id int, v int); CREATE TABLE b (id int, v int); CREATE TABLE small (id int); \
                      INSERT INTO a VALUES (7, 1); INSERT INTO b VALUES (1007, 1); INSERT INTO small VALUES (1), (2), (3)";

const PAIR: &str = "SELECT 1 FROM a WHERE a.id = c.id UNION ALL SELECT 1 FROM b WHERE b.id = c.id";

#[tokio::test(flavor = "multi_thread")]
async fn correlated_subqueries_of_several_tasks_never_stop_each_other() {
    let server = Server::start_with(&["--threads", "2"], &[]);
    let owner = server.connect().await;
    owner.batch_execute(TABLES).await.expect("the tables are new");
    let sql = format!("SELECT count(*) FROM big c WHERE id % 1000 = 7 AND EXISTS ({PAIR})");
    let clients = join_all((0..SESSIONS).map(|_| server.connect())).await;
    let all = join_all(clients.iter().map(|client| client.query_one(&sql, &[])));
    let onlooker = async {
        let clock = SystemClock::new();
        for _ in 0..20 {
            let row = owner.query_one("SELECT count(*) FROM small", &[]).await.expect("others answer");
            assert_eq!(row.get::<_, i64>(0), 3);
            clock.sleep(Duration::from_millis(50)).await;
        }
    };
    let (counts, ()) = with_timeout(async { tokio::join!(all, onlooker) }, &sql).await;
    for count in counts {
        assert_eq!(count.expect("it answers").get::<_, i64>(0), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn they_answer_wherever_they_are_written() {
    let server = Server::start_with(&["--threads", "2"], &[]);
    let client = server.connect().await;
    client.batch_execute(TABLES).await.expect("the tables are new");
    let among = "SELECT a.id FROM a WHERE a.v = c.id % 2 UNION ALL SELECT b.id FROM b WHERE b.v = c.id % 2";
    let ranked = "SELECT row_number() OVER (PARTITION BY v ORDER BY id) FROM a WHERE a.id = c.id";
    for (sql, count) in [
        (format!("SELECT count(*) FROM big c WHERE id % 1000 = 7 AND ({PAIR}) = 1"), 2),
        (format!("SELECT count(({PAIR})) FROM big c WHERE id % 1000 = 7"), 2),
        (format!("SELECT count(*) FROM big c WHERE id % 1000 = 7 AND id IN ({among})"), 2),
        (format!("SELECT count(*) FROM big c WHERE id % 1000 = 7 AND id NOT IN ({among})"), 98),
        (format!("SELECT count(*) FROM big c WHERE id % 1000 = 7 AND EXISTS ({ranked})"), 1),
        (
            "SELECT count(*) FROM (SELECT 2 v UNION ALL SELECT 3) q CROSS JOIN LATERAL (SELECT 5 UNION SELECT q.v) r"
                .to_owned(),
            4,
        ),
    ] {
        let row = with_timeout(client.query_one(&sql, &[]), &sql).await;
        assert_eq!(row.unwrap_or_else(|error| panic!("{sql}: {error:?}")).get::<_, i64>(0), count, "{sql}");
    }
    let sql = format!("UPDATE big c SET id = -id WHERE id % 1000 = 7 AND EXISTS ({PAIR})");
    assert_eq!(with_timeout(client.execute(&sql, &[]), &sql).await.expect("it answers"), 2);
    let sql = format!("DELETE FROM big c WHERE id % 1000 = 0 AND NOT EXISTS ({PAIR})");
    assert_eq!(with_timeout(client.execute(&sql, &[]), &sql).await.expect("it answers"), 100);
    let sql = "WITH t AS (SELECT array[1] AS n UNION ALL SELECT array[2]) \
               SELECT n[1], (SELECT count(*) FROM t u WHERE u.n = t.n) FROM t ORDER BY 1";
    let rows = with_timeout(client.query(sql, &[]), sql).await.expect("it answers");
    let rows: Vec<(i32, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, 1), (2, 1)]);
}

async fn with_timeout<T>(work: impl Future<Output = T>, sql: &str) -> T {
    let clock = SystemClock::new();
    tokio::select! {
        done = work => done,
        () = clock.sleep(HANG_TIMEOUT) => panic!("hangs: {sql}"),
    }
}
