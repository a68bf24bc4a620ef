//! Hostile statements: deep, long, slow to plan or slow to run, with the allowed outcomes of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::{NoTls, SimpleQueryMessage};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use super::session;

/// Shape of a hostile statement.
struct HostileShape {
    name: &'static str,
    /// Largest size; sizes are drawn from 1 to this.
    size_max: usize,
    text: fn(usize) -> String,
    /// Expected first column of the last row, if the statement is answered.
    answer: Option<&'static str>,
}

const fn shape(name: &'static str, size_max: usize, text: fn(usize) -> String) -> HostileShape {
    HostileShape { name, size_max, text, answer: None }
}

const SHAPES: [HostileShape; 27] = [
    shape("UNION", 3_000, |n| vec!["SELECT 1"; n].join(" UNION ")),
    shape("UNION ALL", 10_000, |n| vec!["SELECT 1"; n].join(" UNION ALL ")),
    shape("INTERSECT", 2_000, |n| vec!["SELECT 1"; n].join(" INTERSECT ")),
    shape("AND", 20_000, |n| {
        format!(
            "SELECT count(*) FROM generate_series(1, 9) AS g(i) WHERE {}",
            list(n, " AND ", |k| format!("i <> {k}"))
        )
    }),
    shape("OR", 20_000, |n| format!("SELECT count(*) FROM big WHERE {}", list(n, " OR ", |k| format!("id = {k}")))),
    shape("NOT IN", 5_000, |n| {
        format!("SELECT count(*) FROM small WHERE id NOT IN ({})", list(n, ", ", |k| format!("v + {k}")))
    }),
    shape("IN", 50_000, |n| format!("SELECT count(*) FROM big WHERE id IN ({})", list(n, ", ", |k| k.to_string()))),
    shape("HAVING", 5_000, |n| {
        format!("SELECT k FROM big GROUP BY k HAVING {}", list(n, " AND ", |k| format!("count(*) <> {k}")))
    }),
    shape("JOIN", 600, |n| {
        format!("SELECT count(*) FROM small s{}", list(n, "", |k| format!(" JOIN small s{k} ON s.id = s{k}.id")))
    }),
    shape("chain of WITH", 2_000, |n| {
        format!(
            "WITH c0 AS (SELECT 1 AS x){} SELECT * FROM c{n}",
            list(n, "", |k| format!(", c{} AS (SELECT x FROM c{k} WHERE x > 0)", k + 1))
        )
    }),
    shape("doubling WITH", 60, |n| {
        let steps = list(n, "", |k| format!(", c{} AS (SELECT a.x FROM c{k} a, c{k} b)", k + 1));
        format!("WITH c0 AS (SELECT 1 AS x){steps} SELECT count(*) FROM c{n}")
    }),
    shape("scalar subqueries", 2_000, |n| format!("SELECT {}1{}", "(SELECT ".repeat(n), ")".repeat(n))),
    shape("EXISTS", 200, |n| format!("SELECT 1 WHERE {}true{}", "EXISTS (SELECT 1 WHERE ".repeat(n), ")".repeat(n))),
    shape("IN nests", 200, |n| format!("SELECT 1 WHERE {}1{}", "1 IN (SELECT ".repeat(n), ")".repeat(n))),
    shape("FROM nests", 2_000, |n| format!("SELECT * FROM {}small{}", "(SELECT * FROM ".repeat(n), ") AS q".repeat(n))),
    shape("parentheses", 20_000, |n| format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))),
    shape("sum", 2_000, |n| format!("SELECT {} FROM small", list(n, " + ", |_| "v".to_owned()))),
    shape("concatenation", 2_000, |n| format!("SELECT max({}) FROM small", list(n, " || ", |_| "v::text".to_owned()))),
    shape("CASE", 200, |n| {
        format!("SELECT {}1{} FROM small", "CASE ".repeat(n), " WHEN 1 THEN 1 WHEN 2 THEN 2 ELSE 3 END".repeat(n))
    }),
    shape("functions", 3_000, |n| format!("SELECT {}-1{}", "abs(".repeat(n), ")".repeat(n))),
    shape("statements", 20_000, |n| "SELECT 1;".repeat(n)),
    shape("folded value", 500_000_000, |n| format!("SELECT length(repeat('x', {n}))")),
    shape("rows without end", 1, |_| {
        "SELECT count(*) FROM big a, big b, big c WHERE a.id + b.id + c.id = -1".to_owned()
    }),
    shape("recursion", 1, |_| {
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n % 7 + 1 FROM r) SELECT count(*) FROM r".to_owned()
    }),
    shape("sleep", 1, |_| "SELECT pg_sleep(100)".to_owned()),
    HostileShape {
        name: "correlated UNION ALL",
        size_max: 1,
        text: |_| {
            "SELECT count(*) FROM big c WHERE id % 1000 = 7 AND EXISTS (SELECT 1 FROM a WHERE a.id = c.id UNION ALL SELECT 1 FROM b WHERE b.id = c.id)"
                .to_owned()
        },
        answer: Some("2"),
    },
    HostileShape {
        name: "lateral UNION",
        size_max: 1,
        text: |_| {
            "SELECT count(*) FROM (SELECT 2 v UNION ALL SELECT 3) q1 CROSS JOIN LATERAL (SELECT 5 UNION SELECT q1.v) q2"
                .to_owned()
        },
        answer: Some("4"),
    },
];

/// SQLSTATEs that mean an internal error or a broken test statement; all others are refusals.
const BROKEN: [&str; 7] = ["XX000", "XX001", "XX002", "42501", "42601", "42703", "42P01"];
/// Time after which a statement that is neither answered nor cancelled hangs.
const HANGING: Duration = Duration::from_secs(180);

/// Sends hostile statements until `is_over` and returns their number; half of them are cancelled while they run.
pub(super) async fn attack(port: u16, number: u64, is_on_workers: bool, is_over: Arc<AtomicBool>) -> u64 {
    let (random, clock) = (SeededRandom::new(number), SystemClock::new());
    let client = session(port, "low", is_on_workers).await;
    client.batch_execute("SET statement_timeout = '3s'").await.expect("it is a setting");
    let mut attacks = 0;
    while !is_over.load(Ordering::Relaxed) {
        let shape = &SHAPES[below(&random, SHAPES.len())];
        let size = 1 + below(&random, shape.size_max);
        let sql = (shape.text)(size);
        let cancel = client.cancel_token();
        let patience = Duration::from_millis(below(&random, 2_000) as u64);
        let is_cancelled = below(&random, 2) == 0;
        let cancelling = async {
            clock.sleep(patience).await;
            if is_cancelled {
                // A late cancel request finds nothing, or hits the next statement: both are allowed below.
                let _ = cancel.cancel_query(NoTls).await;
            }
            clock.sleep(HANGING).await;
        };
        let told = tokio::select! {
            told = client.simple_query(&sql) => told,
            () = cancelling => panic!("{} of {size} hangs", shape.name),
        };
        match told {
            Ok(messages) => {
                let row = messages.iter().rev().find_map(|message| match message {
                    SimpleQueryMessage::Row(row) => row.get(0),
                    _ => None,
                });
                if let Some(answer) = shape.answer {
                    assert_eq!(row, Some(answer), "{} of {size}", shape.name);
                }
            }
            Err(error) => {
                let code = error.code().unwrap_or_else(|| panic!("{} of {size}: {error:?}", shape.name)).code();
                assert!(!BROKEN.contains(&code), "{} of {size}: {error:?}", shape.name);
            }
        }
        attacks += 1;
    }
    attacks
}

/// Joins `n` items built from their numbers, from 0.
fn list(n: usize, between: &str, piece: impl Fn(usize) -> String) -> String {
    (0..n).map(piece).collect::<Vec<_>>().join(between)
}

fn below(random: &SeededRandom, end: usize) -> usize {
    usize::try_from(random.next_u64() % end as u64).expect("it is below a size")
}
