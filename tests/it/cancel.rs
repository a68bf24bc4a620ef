//! Running statements of all kinds are cancelled: the client gets the error immediately, and nothing continues in the
//! background.

use std::cell::Cell;
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

use crate::server::Server;

/// Statements that process 10^10 rows or more, or never end: no machine finishes one before it is cancelled.
/// Conditions read all tables, so that no join order finds an empty result early.
const ENDLESS: [(&str, &str); 14] = [
    (
        "join with a residual condition",
        "SELECT count(*) FROM big a JOIN big b ON a.k = b.k JOIN big c ON b.k = c.k JOIN big d ON c.k = d.k \
         AND a.n + b.n + c.n + d.n < 0",
    ),
    ("cross join that gives nothing", "SELECT count(*) FROM big a, big b, big c WHERE a.n + b.n + c.n = -1"),
    ("cross join that is sent", "SELECT a.n, b.v FROM big a, big b"),
    ("large build side", "SELECT count(*) FROM big o JOIN (SELECT a.n * b.n AS p FROM big a, big b) AS s ON s.p = o.n"),
    ("groups of few keys", "SELECT (a.n * b.n * c.n) % 100 AS p, count(*) FROM big a, big b, big c GROUP BY 1"),
    ("groups of many keys", "SELECT count(*) FROM (SELECT a.n * b.n AS p, count(*) FROM big a, big b GROUP BY 1) AS s"),
    ("sort", "SELECT a.n, b.n FROM big a, big b ORDER BY a.n * b.n % 1000, a.n"),
    (
        "window",
        "SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY a.k ORDER BY a.n * b.n) AS r FROM big a, big b) AS s",
    ),
    (
        "shared rows",
        "WITH s AS (SELECT a.n * b.n * c.n % 100000 AS g, count(*) AS c FROM big a, big b, big c GROUP BY 1) \
         SELECT count(*) FROM s p JOIN s q ON p.c = q.g",
    ),
    ("subquery for each row", "SELECT sum((SELECT count(*) FROM big b, big c WHERE a.n + b.n + c.n > 0)) FROM big a"),
    ("recursion", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n % 7 + 1 FROM r) SELECT count(*) FROM r"),
    ("series", "SELECT count(*) FROM generate_series(1, 1000000000000000) AS g(i)"),
    ("copy to a file", "COPY (SELECT a.n, b.v FROM big a, big b) TO 'FOLDER/copied.csv'"),
    ("rows for a table", "INSERT INTO sink SELECT a.n * b.n, a.k, b.v FROM big a, big b"),
];

/// Settings that select the code that runs them.
const ENGINES: [(&str, &str); 2] = [("engine", "SET kiln.engine = on"), ("operators", "SET kiln.engine = off")];

/// Little memory, so that statements are spilling when they are cancelled. Each thread has its own buffers.
const LITTLE: [&str; 4] = ["--memory-mb", "24", "--threads", "2"];

/// Number of cancellations of each statement, and time until each.
const TIMES: u32 = 3;
const RUNNING: Duration = Duration::from_millis(300);

/// Time after which a statement that has not begun, ended or freed its memory hangs; normally it takes milliseconds.
const HANGING: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_ends_at_once() {
    let (plenty, little) = (Server::start(), Server::start_with(&LITTLE, &[]));
    let (mut all, mut told) = (Vec::new(), Vec::new());
    for (room, server) in [("", &plenty), (", spilling", &little)] {
        let client = server.connect().await;
        let tables = "CREATE TABLE big (n bigint, k bigint, v text); CREATE TABLE sink (n bigint, k bigint, v text); \
                      INSERT INTO big SELECT i, i % 100, 'text ' || i FROM generate_series(1, 100000) AS g(i)";
        client.batch_execute(tables).await.expect("the tables are new");
        for (way, setting) in ENGINES {
            client.batch_execute(setting).await.expect("it is a setting");
            for (kind, sql) in ENDLESS {
                let sql = &sql.replace("FOLDER", &server.folder().display().to_string());
                for _ in 0..TIMES {
                    let Some((waited, freed)) = cancel_and_measure(server, &client, sql).await else {
                        assert!(!room.is_empty(), "{kind}, {way}: there is memory");
                        continue;
                    };
                    all.push(waited);
                    told.push((waited, freed, format!("{kind}, {way}{room}")));
                }
            }
        }
    }
    let statements = 2 * ENGINES.len() * ENDLESS.len() * TIMES as usize;
    assert!(statements * 3 / 4 < all.len(), "most are cancelled: {} of {statements}", all.len());
    all.sort_unstable();
    let (best, median, worst) = (all[0], all[all.len() / 2], all[all.len() - 1]);
    println!("{} statements cancelled: best {best:?}, median {median:?}, worst {worst:?}", all.len());
    told.sort_by_key(|(waited, _, _)| std::cmp::Reverse(*waited));
    told.iter().take(5).for_each(|(waited, _, kind)| println!("told after {waited:?}: {kind}"));
    told.sort_by_key(|(_, freed, _)| std::cmp::Reverse(*freed));
    told.iter().take(5).for_each(|(_, freed, kind)| println!("memory free after {freed:?}: {kind}"));
}

/// Cancels a running statement; returns how long its client waited, and how long its memory stayed in use.
///
/// `None` if it had no memory left before.
async fn cancel_and_measure(server: &Server, client: &Client, sql: &str) -> Option<(Duration, Duration)> {
    let clock = SystemClock::new();
    let cancel = client.cancel_token();
    let onlooker = server.connect().await;
    let asked = Cell::new(None);
    let running = async {
        let ended = client.batch_execute(sql).await;
        (ended, clock.monotonic())
    };
    let cancelling = async {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()";
        wait_for(&onlooker, active, 1, sql).await;
        clock.sleep(RUNNING).await;
        asked.set(Some(clock.monotonic()));
        cancel.cancel_query(NoTls).await.expect("the server listens");
        clock.sleep(HANGING).await;
    };
    let (ended, told) = tokio::select! {
        ended = running => ended,
        () = cancelling => panic!("{sql} goes on after it was cancelled"),
    };
    let error = ended.expect_err(sql);
    if error.code() == Some(&SqlState::OUT_OF_MEMORY) {
        return None;
    }
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{sql}: {error:?}");
    let asked = asked.get().unwrap_or_else(|| panic!("nobody has cancelled {sql}"));
    let held = "SELECT coalesce(sum(memory_bytes), 0)::int8 FROM sys.query WHERE pid <> pg_backend_pid()";
    wait_for(&onlooker, held, 0, sql).await;
    Some((told.saturating_sub(asked), clock.monotonic().saturating_sub(told)))
}

/// Waits until a query returns the expected number.
async fn wait_for(client: &Client, query: &str, expected: i64, sql: &str) {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    loop {
        let row = client.query_one(query, &[]).await.expect("the server answers");
        let found: i64 = row.get(0);
        if found == expected {
            return;
        }
        assert!(clock.monotonic() - begun < HANGING, "{sql}: {query} gives {found}, not {expected}");
        clock.sleep(Duration::from_millis(5)).await;
    }
}
