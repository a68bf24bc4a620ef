//! The same statements return the same rows with and without indexes, wherever the rows are stored.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};
use types::Random;
use types::random::SeededRandom;

use crate::server::{Server, nightly};

const ROUNDS: usize = 6;
const ROUNDS_NIGHTLY: usize = 100;
const QUERIES: [&str; 30] = [
    "SELECT count(*), min(b), max(c), sum(d) FROM t WHERE a = $1 AND b > $2",
    "SELECT count(DISTINCT c) + 1, count(d) FILTER (WHERE b < $2) FROM t WHERE a = $1",
    "SELECT coalesce(sum(d), 0), avg(b) FROM t WHERE c = 'text ' || $1::int AND b <> $2",
    "SELECT * FROM t WHERE a = $1 AND b = $2",
    "SELECT c, a + b AS sum FROM t WHERE b = $2 AND $1 = a AND c > 'm'",
    "SELECT a, b FROM t WHERE a = $1 AND b >= $2 ORDER BY b LIMIT 5",
    "SELECT b FROM t WHERE a = $1 AND b < $2 ORDER BY b DESC LIMIT 3 OFFSET 1",
    "SELECT b, d FROM t WHERE a = $1 AND b <> $2 ORDER BY d DESC NULLS LAST, b",
    "SELECT a, b, c FROM t WHERE a BETWEEN $1 AND $2 ORDER BY a, b",
    "SELECT a, b FROM t WHERE c = 'text ' || $1::int AND b > $2 ORDER BY a, b",
    "SELECT a, b, d FROM t WHERE d = $1::int::numeric(8,2) AND b <> $2 ORDER BY a, b",
    "SELECT coalesce(d, 0) AS d, CASE WHEN b > $2 THEN c END AS c FROM t WHERE a = $1 ORDER BY b",
    "SELECT a, b FROM t WHERE a = $1 AND b IN ($2, $2 + 1, 3) ORDER BY b",
    "SELECT a, b FROM t WHERE a > $1 AND b = $2 ORDER BY a LIMIT 7",
    "SELECT a, b FROM t WHERE d IS NULL AND a = $1 AND b <= $2 ORDER BY b",
    "SELECT x.b, x.c FROM t AS x WHERE x.a = $1 AND x.b = $2 FOR UPDATE",
    "SELECT a, b FROM t WHERE (a, b) = ($1, $2)",
    "SELECT min(b) FROM t WHERE a = $1 AND b > $2",
    "SELECT max(b) + 1 FROM t WHERE a = $1 AND b < $2",
    "SELECT max(d) FROM t WHERE d < $1::int + $2::int",
    "SELECT min(b) FROM (SELECT b, c FROM t WHERE a = $1) x WHERE b > $2 AND c > 'text 2'",
    "SELECT b FROM (SELECT b FROM t WHERE a = $1 AND b > $2 ORDER BY b LIMIT 3) x LIMIT 10",
    "SELECT b FROM (SELECT b FROM t WHERE a = $1 AND b > $2 ORDER BY b LIMIT 3) x ORDER BY b OFFSET 1",
    "SELECT count(*) FROM (SELECT b FROM t WHERE a = $1 AND b > $2 LIMIT 2) x LIMIT 1",
    "SELECT min(a) FROM t WHERE c = 'text ' || $1::int AND a > $2",
    "SELECT b, c, d FROM t WHERE a = $1 AND b >= $2 ORDER BY b LIMIT 3 OFFSET 1 FOR NO KEY UPDATE",
    "SELECT x.b, y.b, y.c FROM t AS x, t AS y WHERE x.a = $1 AND x.b > $2 AND y.a = x.b ORDER BY 1, 2",
    "SELECT count(DISTINCT y.b), sum(y.d), max(x.c) FROM t x JOIN t y ON y.c = x.c AND y.a = $1 WHERE x.a = $1 AND x.b < $2",
    "SELECT x.b, z.b FROM t x JOIN t y ON y.d = x.d JOIN t z ON z.a = y.a AND z.b = x.b WHERE x.a = $1 AND x.b >= $2 ORDER BY 1, 2 LIMIT 4",
    "SELECT y.c FROM t x, t y WHERE x.a = $1 AND x.b = $2 AND y.a = $1 AND y.b = $2 AND coalesce(x.d, 0) = coalesce(y.d, 0)",
];

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_the_same_by_an_index_and_without_one() {
    let server = Server::start();
    let (with, without) = (server.connect().await, server.connect().await);
    without.batch_execute("SET enable_indexscan = off").await.expect("a setting");
    let define = "CREATE TABLE t (a int, b int, c text, d numeric(8,2), PRIMARY KEY (a, b) ENFORCED); \
                  CREATE INDEX ON t (c, a); CREATE INDEX ON t (d)";
    with.batch_execute(define).await.expect("a table with indexes");
    let mut prepared = Vec::new();
    for query in QUERIES {
        prepared.push((prepare(&with, query).await, prepare(&without, query).await));
    }
    let change = prepare(&with, "UPDATE t SET c = 'text ' || $2::int, d = d + 1 WHERE a = $1 AND b = $2").await;
    let delete = prepare(&with, "DELETE FROM t WHERE a = $1 AND b = $2").await;
    let insert = "INSERT INTO t VALUES ($1, $2, 'text ' || $1::int, NULL) ON CONFLICT DO NOTHING";
    let insert = prepare(&with, insert).await;
    let upsert = "INSERT INTO t VALUES ($1, $2, 'text ' || $1::int, 0) ON CONFLICT (a, b) \
                  DO UPDATE SET d = coalesce(t.d, 0) + 1 RETURNING d::int";
    let upsert = prepare(&with, upsert).await;
    let next = prepare(&without, "SELECT (coalesce(d, 0) + 1)::int FROM t WHERE a = $1 AND b = $2").await;
    let random = SeededRandom::new(7);
    let below = |count: u64| i32::try_from(random.next_u64() % count).expect("small");
    for round in 0..if nightly() { ROUNDS_NIGHTLY } else { ROUNDS } {
        // Some rows are in shards, some unflushed; some of both are deleted or changed.
        let (from, to) = (round * 20, round * 20 + 30);
        let add = format!(
            "INSERT INTO t SELECT g % 12, g, CASE WHEN g % 7 <> 0 THEN 'text ' || g % 5 END, g % 9 FROM generate_series({from}, {to}) AS g \
             ON CONFLICT DO NOTHING"
        );
        with.batch_execute(&add).await.expect("rows");
        if round % 2 == 0 {
            with.batch_execute("VACUUM t").await.expect("rows settle");
        }
        for _ in 0..20 {
            let (a, b) = (below(13), below(160));
            for statement in [&change, &delete, &insert] {
                if below(3) == 0 {
                    with.execute(statement, &[&a, &b]).await.expect("a row changes");
                }
            }
        }
        for _ in 0..10 {
            let (a, b) = (below(13), below(160));
            let wanted = rows(&without, &next, &[&a, &b]).await;
            let wanted = if wanted.is_empty() { vec!["Some(0)".to_owned()] } else { wanted };
            assert_eq!(rows(&with, &upsert, &[&a, &b]).await, wanted, "{a}, {b} in round {round}");
        }
        for _ in 0..40 {
            let (a, b) = (below(13), below(160));
            for ((by_index, by_scan), query) in prepared.iter().zip(QUERIES) {
                let found = rows(&with, by_index, &[&a, &b]).await;
                assert_eq!(found, rows(&without, by_scan, &[&a, &b]).await, "{query} with {a}, {b} in round {round}");
            }
        }
    }
}

async fn prepare(client: &Client, query: &str) -> Statement {
    client.prepare(query).await.unwrap_or_else(|error| panic!("{query}: {error:?}"))
}

/// Returns the rows as text.
async fn rows(client: &Client, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Vec<String> {
    let found = client.query(statement, values).await.unwrap_or_else(|error| panic!("{error:?}"));
    found.iter().map(text).collect()
}

fn text(row: &Row) -> String {
    let cell = |at: usize| match row.columns()[at].type_().name() {
        "int4" => format!("{:?}", row.get::<_, Option<i32>>(at)),
        "int8" => format!("{:?}", row.get::<_, Option<i64>>(at)),
        "text" => format!("{:?}", row.get::<_, Option<String>>(at)),
        _ => format!("{:?}", row.get::<_, Option<Decimal>>(at)),
    };
    (0..row.len()).map(cell).collect::<Vec<_>>().join("|")
}

/// A numeric in its wire format.
#[derive(Debug)]
#[expect(dead_code, reason = "shown")]
struct Decimal(Vec<u8>);

impl tokio_postgres::types::FromSql<'_> for Decimal {
    fn from_sql(_: &tokio_postgres::types::Type, raw: &[u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(of: &tokio_postgres::types::Type) -> bool {
        *of == tokio_postgres::types::Type::NUMERIC
    }
}
