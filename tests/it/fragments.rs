//! The fragment cache under changes: a session with it sees the same rows as one without, and an older transaction
//! sees its snapshot.

use tokio_postgres::{Client, SimpleQueryMessage};
use types::Random;
use types::random::SeededRandom;

use crate::server::Server;

const STEPS: u64 = 70;
/// Sums of these floats are exact in any order.
const QUERIES: [&str; 7] = [
    "SELECT k, count(*), sum(v), min(s), max(id) FROM t GROUP BY k ORDER BY k",
    "SELECT count(*), sum(f), avg(v), stddev(id) FROM t WHERE k <> 3 AND s LIKE 'w%'",
    "SELECT s, k % 2 AS half, count(*), sum(f) FROM t WHERE id > 500 GROUP BY ROLLUP (1, 2) ORDER BY 1, 2",
    "SELECT date_trunc('day', at) AS day, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT count(DISTINCT s), count(DISTINCT k) FILTER (WHERE id % 2 = 0) FROM t",
    "SELECT CASE WHEN f < 100 THEN 'few' ELSE upper(s) END AS w, sum(v) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT t.k, count(*) FROM t WHERE t.k < 5 GROUP BY t.k HAVING count(*) > 10 ORDER BY 1",
];
const COLUMNS: &str = "id bigint, k int, v numeric(12,2), f double precision, s text, at timestamptz";

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_those_without_the_cache_whatever_changes() {
    let server = Server::start_with(&["--settle-rows", "3000", "--threads", "3"], &[]);
    let (with, without, old) = (server.connect().await, server.connect().await, server.connect().await);
    batch(&without, "SET kiln.fragment_cache = off").await;
    batch(&without, &format!("CREATE TABLE t ({COLUMNS})")).await;
    let random = SeededRandom::new(20_260);
    let (mut next, mut seen) = (0, None);
    for step in 0..STEPS {
        let change = change(&random, &mut next);
        batch(&without, &change).await;
        if step == 2 {
            batch(&with, "SET TimeZone = 'Asia/Tokyo'").await;
            batch(&without, "SET TimeZone = 'Asia/Tokyo'").await;
        }
        for query in QUERIES {
            let expected = rows(&without, query).await;
            for time in ["first", "second"] {
                assert_eq!(rows(&with, query).await, expected, "the {time} time, after step {step}: {change}: {query}");
            }
        }
        // The view of a transaction that began some steps ago.
        match &seen {
            None => {
                batch(&old, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
                seen = Some(all(&old).await);
            }
            Some(before) => {
                assert_eq!(all(&old).await, *before, "after step {step}: {change}");
                if below(&random, 6) == 0 {
                    batch(&old, "COMMIT").await;
                    seen = None;
                }
            }
        }
    }
    let used = "SELECT sum(hits)::int8, sum(misses)::int8 FROM sys.cache WHERE tier = 'fragment'";
    let used = with.query_one(used, &[]).await.expect("it is a view");
    let (hits, misses): (i64, i64) = (used.get(0), used.get(1));
    assert!(0 < misses && misses < hits, "{hits} shards were known, {misses} were not");
}

/// Draws the next change of the table.
fn change(random: &SeededRandom, next: &mut u64) -> String {
    let insert = |next: &mut u64, count: u64| {
        let (first, last) = (*next, *next + count - 1);
        *next += count;
        format!(
            "INSERT INTO t (id, k, v, f, s, at) SELECT i, i % 9, i * 0.25, i % 4000 / 4.0::float8, 'w' || i % 5, \
             timestamptz '2024-01-01 00:00:00+00' + i * interval '3 minutes' FROM generate_series({first}::bigint, {last}) AS g(i)"
        )
    };
    if *next == 0 {
        return insert(next, 15_000);
    }
    match below(random, 12) {
        0 | 1 => insert(next, 10_500 + below(random, 4_000)),
        2 | 3 => insert(next, 1 + below(random, 900)),
        4 | 5 => format!("DELETE FROM t WHERE id % {} = {}", 30 + below(random, 200), below(random, 30)),
        6 => format!("UPDATE t SET v = v + 1, s = 'x' WHERE id % 400 = {}", below(random, 400)),
        7 => "VACUUM t".to_owned(),
        8 => "VACUUM FULL t".to_owned(),
        9 => format!("ALTER TABLE t ADD COLUMN c{} int DEFAULT {}", below(random, u64::MAX), below(random, 9)),
        10 => "BEGIN; DELETE FROM t WHERE id % 2 = 0; SELECT k, count(*) FROM t GROUP BY k; ROLLBACK".to_owned(),
        _ => {
            *next = 0;
            format!("DROP TABLE t; CREATE TABLE t ({COLUMNS}); {}", insert(next, 11_000))
        }
    }
}

fn below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}

async fn all(client: &Client) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for query in QUERIES {
        all.push(rows(client, query).await);
    }
    all
}

async fn rows(client: &Client, query: &str) -> Vec<String> {
    let messages = client.simple_query(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect::<Vec<_>>().join("|"))
        }
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

async fn batch(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
}
