//! Clusters on real servers: queued statements and their cancellation; suspending, resuming, altering and dropping
//! clusters while statements run; and the state after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

use crate::server::Server;

/// Time after which a condition is considered never to become true.
const PATIENCE: Duration = Duration::from_secs(120);

const BIG: &str = "CREATE TABLE big (i bigint PRIMARY KEY ENFORCED, v text); \
                   INSERT INTO big SELECT i, 'text ' || i FROM generate_series(1, 20000) AS g(i)";
/// A cursor whose first rows come immediately and the last never.
const OPEN: &str = "BEGIN; DECLARE c CURSOR FOR SELECT a.i FROM big a, big b; FETCH 1 FROM c";
const ENDLESS: &str = "SELECT count(*) FROM big a, big b, big c, big d WHERE a.i + b.i + c.i + d.i = -1";

#[tokio::test(flavor = "multi_thread")]
async fn statements_wait_their_turn_and_are_cancelled_there() {
    let server = Server::start_with(&["--cluster-statements", "2"], &[]);
    let (first, second, onlooker) = (server.connect().await, server.connect().await, server.connect().await);
    first.batch_execute(BIG).await.expect("the table is new");
    for client in [&first, &second] {
        client.batch_execute(OPEN).await.expect("two may run");
    }
    let third = server.connect().await;
    let cancel = third.cancel_token();
    let (told, ()) = tokio::join!(third.query("SELECT count(*) FROM big", &[]), async {
        wait_until(&onlooker, "SELECT running = 2 AND queued = 1 FROM sys.cluster WHERE name = 'default'").await;
        wait_until(
            &onlooker,
            "SELECT state = 'queued' AND cluster = 'default' FROM sys.query WHERE query LIKE '%count(*) FROM big'",
        )
        .await;
        wait_until(
            &onlooker,
            "SELECT wait_event = 'ClusterAdmission' FROM pg_stat_activity WHERE query = 'SELECT count(*) FROM big'",
        )
        .await;
        cancel.cancel_query(NoTls).await.expect("the server listens");
    });
    assert_eq!(told.expect_err("it was cancelled").code(), Some(&SqlState::QUERY_CANCELED));

    third.batch_execute("SET statement_timeout = '200ms'").await.expect("SET needs no turn");
    let late = third.query("SELECT count(*) FROM big", &[]).await.expect_err("it waits too long");
    assert_eq!(late.code(), Some(&SqlState::QUERY_CANCELED));
    third.batch_execute("RESET statement_timeout").await.expect("RESET needs no turn");

    let found = third.query_one("SELECT v FROM big WHERE i = $1", &[&7_i64]).await.expect("an index answers at once");
    assert_eq!(found.get::<_, String>(0), "text 7");
    let own = first.query_one("SELECT count(*) FROM big", &[]).await.expect("the session has a turn");
    assert_eq!(own.get::<_, i64>(0), 20_000);

    let (waited, ()) = tokio::join!(third.query_one("SELECT count(*), 1 FROM big", &[]), async {
        wait_until(&onlooker, "SELECT queued = 1 FROM sys.cluster WHERE name = 'default'").await;
        first.batch_execute("COMMIT").await.expect("its cursor is closed");
    });
    assert_eq!(waited.expect("its turn has come").get::<_, i64>(0), 20_000);
    let sql = "SELECT acquire_resources_ms > 0 AND waiting_ms >= acquire_resources_ms AND worker IS NOT NULL \
               AND abs(total_ms - waiting_ms - working_ms) < 0.001 FROM sys.log_query \
               WHERE query = 'SELECT count(*), 1 FROM big' AND outcome = 'DONE'";
    wait_until(&onlooker, sql).await;
    let cancelled = "SELECT count(*) FROM sys.log_query WHERE outcome = 'CANCEL' AND sqlstate = '57014' \
                     AND query = 'SELECT count(*) FROM big'";
    let cancelled = onlooker.query_one(cancelled, &[]).await.expect("the log is there");
    assert_eq!(cancelled.get::<_, i64>(0), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_superuser_runs_where_cursors_of_a_role_hold_all_places() {
    let server = Server::start_with(&["--cluster-statements", "2"], &[]);
    let boss = server.connect().await;
    boss.batch_execute(BIG).await.expect("the table is new");
    boss.batch_execute("CREATE ROLE low LOGIN").await.expect("the role is new");
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let low = server.connect_as("user=low dbname=kiln").await.expect("it may log in");
        low.batch_execute(&BIG.replace("TABLE", "TEMP TABLE")).await.expect("it may have tables of its own");
        sessions.push(low);
    }
    let late = sessions.pop().expect("there are three");
    for holder in &sessions {
        holder.batch_execute(OPEN).await.expect("two may run");
    }
    late.batch_execute("SET statement_timeout = '200ms'").await.expect("SET needs no turn");
    let kept_out = late.query("SELECT count(*) FROM big", &[]).await.expect_err("it waits too long");
    assert_eq!(kept_out.code(), Some(&SqlState::QUERY_CANCELED));
    boss.batch_execute("SET statement_timeout = '60s'").await.expect("SET needs no turn");
    let counted = boss.query_one("SELECT count(*) FROM big", &[]).await.expect("there is a place for it");
    assert_eq!(counted.get::<_, i64>(0), 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_holds_up_others_does_not_wait_for_them() {
    let server = Server::start_with(&["--cluster-statements", "1"], &[]);
    let (first, second, onlooker) = (server.connect().await, server.connect().await, server.connect().await);
    first.batch_execute(BIG).await.expect("the table is new");
    let locked = "BEGIN; UPDATE big SET v = 'first' WHERE i % 1000 = 7";
    first.batch_execute(locked).await.expect("nobody else is there");
    let (waited, ()) =
        tokio::join!(second.execute("UPDATE big SET v = v || ', second' WHERE i % 1000 = 7", &[]), async {
            wait_until(&onlooker, "SELECT running = 1 FROM sys.cluster WHERE name = 'default'").await;
            let updated = first.execute("UPDATE big SET v = v || ', again' WHERE i % 1000 = 7", &[]).await;
            assert_eq!(updated.expect("its turn would never come"), 20);
            first.batch_execute("COMMIT").await.expect("it is the first");
        });
    assert_eq!(waited.expect("the first has committed"), 20);
    let sql = "SELECT count(*) FROM big WHERE v = 'first, again, second'";
    let row = onlooker.query_one(sql, &[]).await.expect("nobody runs any more");
    assert_eq!(row.get::<_, i64>(0), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_and_their_roles_are_there_after_a_restart() {
    let folder = TempDir::with_prefix("kiln-cluster-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    // Also through the extended protocol.
    client.execute("CREATE CLUSTER etl (NODE_COUNT = 2)", &[]).await.expect("it is new");
    let not_yet = client.batch_execute("CREATE USER ana; GRANT USAGE ON CLUSTER etl TO ana").await;
    assert_eq!(not_yet.expect_err("there is no such role yet").code(), Some(&SqlState::ACTIVE_SQL_TRANSACTION));
    for sql in [
        "CREATE USER ana; CREATE USER bob",
        "CREATE CLUSTER asleep; ALTER CLUSTER asleep SUSPEND; GRANT USAGE ON CLUSTER etl TO ana; \
         ALTER USER ana SET DEFAULT_CLUSTER = 'etl'; GRANT OPERATE ON CLUSTER etl TO bob",
    ] {
        client.batch_execute(sql).await.expect("the statements run");
    }
    client.batch_execute("DROP ROLE bob").await.expect("it owns nothing");
    wait_until(&client, "SELECT count(*) = 1 FROM sys.cluster_event WHERE what = 'role_forgotten'").await;
    server.kill();

    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    wait_until(&client, "SELECT ready_workers = 2 AND state = 'running' FROM sys.cluster WHERE name = 'etl'").await;
    wait_until(&client, "SELECT ready_workers = 0 AND state = 'suspended' FROM sys.cluster WHERE name = 'asleep'")
        .await;
    let ana = server.connect_as("user=ana dbname=kiln").await.expect("a role without a password comes in here");
    ana.query_one("SELECT count(*) FROM generate_series(1, 10) AS g(i)", &[]).await.expect("ana may use etl");
    wait_until(
        &client,
        "SELECT cluster = 'etl' FROM sys.log_query WHERE user_name = 'ana' AND query LIKE '%generate_series%'",
    )
    .await;
    client.batch_execute("REVOKE USAGE ON CLUSTER etl FROM ana").await.expect("it is granted");
    let denied = ana.query("SELECT count(*) FROM generate_series(1, 11) AS g(i)", &[]).await;
    assert_eq!(denied.expect_err("it is revoked").code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    ana.query_one("SELECT count(*) FROM sys.cluster", &[]).await.expect("system tables need no cluster");
    assert!(server.stop(), "it ends cleanly");

    let file = folder.path().join("clusters");
    let mut bytes = std::fs::read(&file).expect("the file is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("the file is ours");
    let log = Server::try_start_on(folder.path(), &[]).err().expect("what is damaged is not served");
    assert!(log.contains("the stored cluster definitions are damaged"), "it says what is wrong: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_sleeps_once_its_statements_have_ended_and_wakes_for_the_next() {
    let server = Server::start();
    let (client, onlooker) = (server.connect().await, server.connect().await);
    client.batch_execute(BIG).await.expect("the table is new");
    client.batch_execute("CREATE CLUSTER c (NODE_COUNT = 2)").await.expect("it is new");
    client.batch_execute("USE CLUSTER c").await.expect("it is there");
    wait_until(&onlooker, "SELECT ready_workers = 2 FROM sys.cluster WHERE name = 'c'").await;
    client.batch_execute(OPEN).await.expect("it runs");
    onlooker.batch_execute("ALTER CLUSTER c SET (AUTO_SUSPEND = 1)").await.expect("it is there");
    onlooker.batch_execute("ALTER CLUSTER c SUSPEND").await.expect("it is awake");
    wait_until(&onlooker, "SELECT state = 'suspending' FROM sys.cluster WHERE name = 'c'").await;
    // A statement counts on every worker of its cluster.
    wait_until(
        &onlooker,
        "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'c' AND state = 'draining' AND running = 1",
    )
    .await;
    client.batch_execute("FETCH 1000 FROM c").await.expect("what runs goes on");
    client.batch_execute("COMMIT").await.expect("the cursor is closed");
    wait_until(&onlooker, "SELECT state = 'suspended' AND running = 0 FROM sys.cluster WHERE name = 'c'").await;

    for _ in 0..3 {
        let row = client.query_one("SELECT count(*) FROM big", &[]).await.expect("no client sees that it slept");
        assert_eq!(row.get::<_, i64>(0), 20_000);
        wait_until(&onlooker, "SELECT state = 'suspended' FROM sys.cluster WHERE name = 'c'").await;
    }
    let idle = "SELECT count(*) >= 3 FROM sys.cluster_event WHERE cluster = 'c' AND what = 'suspended' AND detail = 'idle' \
                AND by IS NULL";
    wait_until(&onlooker, idle).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_in_time_is_cancelled_with_its_worker() {
    let server = Server::start_with(&["--drain-grace", "1"], &[]);
    let (client, cursor, onlooker) = (server.connect().await, server.connect().await, server.connect().await);
    client.batch_execute(BIG).await.expect("the table is new");
    onlooker.batch_execute("CREATE CLUSTER c (NODE_COUNT = 2, AUTO_RESUME = FALSE)").await.expect("it is new");
    for client in [&client, &cursor] {
        client.batch_execute("USE CLUSTER c").await.expect("it is there");
    }
    cursor.batch_execute(OPEN).await.expect("it runs");
    let (told, ()) = tokio::join!(client.query(ENDLESS, &[]), async {
        wait_until(&onlooker, "SELECT running = 2 FROM sys.cluster WHERE name = 'c'").await;
        onlooker.batch_execute("ALTER CLUSTER c SUSPEND").await.expect("it is awake");
    });
    assert_eq!(told.expect_err("it never ends").code(), Some(&SqlState::ADMIN_SHUTDOWN));
    wait_until(&onlooker, "SELECT state = 'suspended' FROM sys.cluster WHERE name = 'c'").await;
    let fetched = cursor.batch_execute("FETCH ALL FROM c").await.expect_err("its rows are not made any more");
    assert_eq!(fetched.code(), Some(&SqlState::ADMIN_SHUTDOWN));
    let asleep = client.query(ENDLESS, &[]).await.expect_err("nothing wakes it");
    assert_eq!(asleep.code(), Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE));
    client.query_one("SELECT v FROM big WHERE i = 3", &[]).await.expect("an index answers without a worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_change_and_go_under_load() {
    let server = Server::start();
    let boss = server.connect().await;
    boss.batch_execute(BIG).await.expect("the table is new");
    boss.batch_execute("CREATE CLUSTER c (NODE_COUNT = 1)").await.expect("it is new");
    let mut sessions = tokio::task::JoinSet::new();
    let mut ran = Vec::new();
    for _ in 0..6 {
        let client = server.connect().await;
        client.batch_execute("USE CLUSTER c").await.expect("it is there");
        let count = Arc::new(AtomicU64::new(0));
        ran.push(Arc::clone(&count));
        sessions.spawn(async move {
            loop {
                match client.query_one("SELECT count(*), sum(length(v)) FROM big", &[]).await {
                    Ok(row) => assert_eq!(row.get::<_, i64>(0), 20_000),
                    Err(error) => return error,
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    // Every session has run at least one statement before anything changes.
    let clock = SystemClock::new();
    while ran.iter().any(|count| count.load(Ordering::Relaxed) == 0) {
        assert!(clock.monotonic() < PATIENCE, "every session is answered");
        clock.sleep(Duration::from_millis(20)).await;
    }
    for change in ["SET (NODE_COUNT = 3)", "RENAME TO d"] {
        boss.batch_execute(&format!("ALTER CLUSTER c {change}")).await.expect("it is there");
        SystemClock::new().sleep(Duration::from_millis(500)).await;
    }
    for change in ["SUSPEND", "SET (NODE_COUNT = 1)", "SUSPEND", "RESUME"] {
        boss.batch_execute(&format!("ALTER CLUSTER d {change}")).await.expect("it is there");
        SystemClock::new().sleep(Duration::from_millis(500)).await;
    }
    boss.batch_execute("DROP CLUSTER d").await.expect("it is there");
    while let Some(ended) = sessions.join_next().await {
        let error = ended.expect("every answer is right");
        assert_eq!(error.code(), Some(&SqlState::UNDEFINED_OBJECT), "{error:?}");
    }
    wait_until(&boss, "SELECT count(*) = 0 FROM sys.worker WHERE cluster IS NULL AND state <> 'gone'").await;
    boss.query_one("SELECT count(*) FROM big", &[]).await.expect("the others go on");
}

/// Waits until the single value that a query returns is true.
pub(crate) async fn wait_until(client: &Client, sql: &str) {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    loop {
        let rows = client.query(sql, &[]).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        if rows.first().is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true)) {
            return;
        }
        assert!(clock.monotonic() - begun < PATIENCE, "not within {PATIENCE:?}: {sql}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}
