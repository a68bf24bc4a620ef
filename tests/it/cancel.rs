//! Statements of all kinds are cancelled in the midst: the client is told at once, and nothing goes on behind it.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

use crate::server::Server;

/// What would run for minutes.
const ENDLESS: [(&str, &str); 14] = [
    ("join with a residual condition", "SELECT count(*) FROM big a JOIN big b ON a.k = b.k AND a.n * b.n < 0"),
    ("cross join that gives nothing", "SELECT count(*) FROM big a, big b WHERE a.n + b.n = -1"),
    ("cross join that is sent", "SELECT a.n, b.v FROM big a, big b"),
    ("large build side", "SELECT count(*) FROM big o JOIN (SELECT a.n * b.n AS p FROM big a, big b) AS s ON s.p = o.n"),
    ("groups of few keys", "SELECT (a.n * b.n) % 100 AS p, count(*) FROM big a, big b GROUP BY 1"),
    ("groups of many keys", "SELECT count(*) FROM (SELECT a.n * b.n AS p, count(*) FROM big a, big b GROUP BY 1) AS s"),
    ("sort", "SELECT a.n, b.n FROM big a, big b ORDER BY a.n * b.n % 1000, a.n"),
    (
        "window",
        "SELECT sum(r) FROM (SELECT rank() OVER (PARTITION BY a.k ORDER BY a.n * b.n) AS r FROM big a, big b) AS s",
    ),
    (
        "shared rows",
        "WITH s AS (SELECT a.n * b.n % 100000 AS g, count(*) AS c FROM big a, big b GROUP BY 1) SELECT count(*) FROM s p JOIN s q ON p.c = q.g",
    ),
    ("subquery for each row", "SELECT sum((SELECT count(*) FROM big b WHERE a.n + b.n > 0)) FROM big a"),
    ("recursion", "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n > 0) SELECT count(*) FROM r"),
    ("series", "SELECT count(*) FROM generate_series(1, 100000000000) AS g(i)"),
    ("copy to a file", "COPY (SELECT a.n, b.v FROM big a, big b) TO 'FOLDER/copied.csv'"),
    ("rows for a table", "INSERT INTO sink SELECT a.n * b.n, a.k, b.v FROM big a, big b"),
];

/// Where these differ by what does them.
const WAYS: [(&str, &str); 2] = [("engine", "SET kiln.engine = on"), ("operators", "SET kiln.engine = off")];

/// With hardly any memory they spill when they are cancelled.
const LITTLE: [&str; 2] = ["--memory-mb", "24"];

/// Each is cancelled so often, after so long.
const TIMES: u32 = 3;
const RUNNING: Duration = Duration::from_millis(300);

/// Machines that run tests are busy; the best of many tells what the server needs.
const BEST_MAX: Duration = Duration::from_millis(50);
const MEDIAN_MAX: Duration = Duration::from_millis(250);
/// What was running holds no memory any more after this.
const FREED_MAX: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_ends_at_once() {
    let (plenty, little) = (Server::start(), Server::start_with(&LITTLE, &[]));
    let (mut all, mut told) = (Vec::new(), Vec::new());
    for (room, server) in [("", &plenty), (", spilling", &little)] {
        let client = server.connect().await;
        let tables = "CREATE TABLE big (n bigint, k bigint, v text); CREATE TABLE sink (n bigint, k bigint, v text); \
                      INSERT INTO big SELECT i, i % 100, 'text ' || i FROM generate_series(1, 100000) AS g(i)";
        client.batch_execute(tables).await.expect("the tables are new");
        for (way, setting) in WAYS {
            client.batch_execute(setting).await.expect("it is a setting");
            for (kind, sql) in ENDLESS {
                let sql = &sql.replace("FOLDER", &server.folder().display().to_string());
                for _ in 0..TIMES {
                    let Some((waited, freed)) = cancelled(server, &client, sql).await else {
                        assert!(!room.is_empty(), "{kind}, {way}: there is memory");
                        continue;
                    };
                    all.push(waited);
                    told.push((waited, freed, format!("{kind}, {way}{room}")));
                }
            }
        }
    }
    let statements = 2 * WAYS.len() * ENDLESS.len() * TIMES as usize;
    assert!(statements * 3 / 4 < all.len(), "most are cancelled: {} of {statements}", all.len());
    all.sort_unstable();
    let (best, median, worst) = (all[0], all[all.len() / 2], all[all.len() - 1]);
    println!("{} statements cancelled: best {best:?}, median {median:?}, worst {worst:?}", all.len());
    told.sort_by_key(|(waited, _, _)| std::cmp::Reverse(*waited));
    told.iter().take(5).for_each(|(waited, _, kind)| println!("told after {waited:?}: {kind}"));
    told.sort_by_key(|(_, freed, _)| std::cmp::Reverse(*freed));
    told.iter().take(5).for_each(|(_, freed, kind)| println!("memory free after {freed:?}: {kind}"));
    assert!(best < BEST_MAX && median < MEDIAN_MAX, "best {best:?}, median {median:?}");
}

/// Cancels a statement in the midst: how long its client then waits, and how long until its memory is free. `None` where it had no memory
/// left before.
async fn cancelled(server: &Server, client: &Client, sql: &str) -> Option<(Duration, Duration)> {
    let clock = SystemClock::new();
    let cancel = client.cancel_token();
    let running = async {
        let ended = client.batch_execute(sql).await;
        (ended, clock.monotonic())
    };
    let (ended, asked) = tokio::join!(running, async {
        clock.sleep(RUNNING).await;
        let asked = clock.monotonic();
        cancel.cancel_query(NoTls).await.expect("the server listens");
        asked
    });
    let (ended, told) = ended;
    let error = ended.expect_err(sql);
    if error.code() == Some(&SqlState::OUT_OF_MEMORY) {
        return None;
    }
    assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{sql}: {error:?}");
    let waited = told.saturating_sub(asked);
    let onlooker = server.connect().await;
    loop {
        let held = "SELECT coalesce(sum(memory_bytes), 0)::int8 FROM sys.query WHERE pid <> pg_backend_pid()";
        let row = onlooker.query_one(held, &[]).await.expect("the server answers");
        let freed = clock.monotonic() - told;
        if row.get::<_, i64>(0) == 0 {
            return Some((waited, freed));
        }
        assert!(freed < FREED_MAX, "{sql}: {} bytes are left", row.get::<_, i64>(0));
        clock.sleep(Duration::from_millis(5)).await;
    }
}
