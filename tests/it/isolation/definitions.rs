//! Clients write rows while another one changes the table's definition: no row is lost or invented, a new column has
//! its default everywhere, and an index finds the same rows as a scan. PostgreSQL is the control.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_postgres::{Client, Error};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::postgres::Postgres;
use crate::server::{Server, nightly};

const WRITERS: i64 = 3;
/// Distance between the first keys of two writers, and keys used by each.
const RANGE: i64 = 1_000;
const KEYS: u64 = 60;
const VALUES: u64 = 10;
const SPAN: Duration = Duration::from_secs(4);
const SPAN_NIGHTLY: Duration = Duration::from_secs(60);
/// PostgreSQL counts dropped columns among the 1,600 that a table can have.
const ROUNDS_MAX: i32 = 1_500;
const ROUNDS_MIN: i32 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn definitions_change_beside_writers_on_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let mut clients = Vec::new();
    for _ in 0..=WRITERS {
        clients.push(postgres.connect().await);
    }
    change_beside_writers(clients, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_change_beside_writers_on_kiln() {
    for storage in ["", " WITH (storage = row)"] {
        let server = Server::start();
        let mut clients = Vec::new();
        for _ in 0..=WRITERS {
            clients.push(server.connect().await);
        }
        let settling = server.connect().await;
        let settler = tokio::spawn(async move {
            while settling.batch_execute("VACUUM").await.is_ok() {
                SystemClock::new().sleep(Duration::from_millis(50)).await;
            }
        });
        change_beside_writers(clients, storage).await;
        settler.abort();
    }
}

async fn change_beside_writers(mut clients: Vec<Client>, storage: &str) {
    let definer = clients.pop().expect("there are several");
    let create = format!("CREATE TABLE test (id bigint PRIMARY KEY, value int){storage}");
    definer.batch_execute(&create).await.expect("the table is new");
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = clients
        .into_iter()
        .zip(0..)
        .map(|(client, number)| tokio::spawn(write(client, number, Arc::clone(&is_over))))
        .collect();
    let (clock, span) = (SystemClock::new(), if nightly() { SPAN_NIGHTLY } else { SPAN });
    let mut rounds = 0;
    // A slow machine does at least the minimum asserted below.
    while (clock.monotonic() < span || rounds < ROUNDS_MIN) && rounds < ROUNDS_MAX {
        rounds += 1;
        define(&definer, rounds).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let (mut expected, mut writes) = (BTreeMap::new(), 0);
    for writer in writers {
        let (rows, done) = writer.await.expect("writers meet nothing strange");
        expected.extend(rows);
        writes += done;
    }
    let rows = definer.query("SELECT id, value FROM test", &[]).await.expect("it answers");
    let found: BTreeMap<i64, i32> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows.len(), found.len(), "no row is there twice");
    assert_eq!(found, expected);
    println!("{writes} writes beside {rounds} rounds of definitions{storage}");
    assert!(1 < rounds && 0 < writes);
}

/// Adds and drops a column and an index, and checks them in between.
async fn define(client: &Client, round: i32) {
    run(client, &format!("ALTER TABLE test ADD COLUMN more int DEFAULT {round}")).await;
    run(client, "CREATE INDEX test_value ON test (value)").await;
    let sql = format!(
        "SELECT (SELECT count(*) FROM test WHERE more IS DISTINCT FROM {round}),
                (SELECT count(*) FROM test WHERE value = 3), (SELECT count(*) FROM test WHERE value + 0 = 3)"
    );
    let row = client.query_one(&sql, &[]).await.expect("it answers");
    let counts: (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(counts.0, 0, "round {round}: rows without the default of the column");
    assert_eq!(counts.1, counts.2, "round {round}: an index and a scan");
    run(client, "DROP INDEX test_value").await;
    run(client, "ALTER TABLE test DROP COLUMN more").await;
}

/// Runs the statement, again after each conflict.
async fn run(client: &Client, sql: &str) {
    while let Err(error) = client.batch_execute(sql).await {
        expect_conflict(&error, sql);
    }
}

fn expect_conflict(error: &Error, sql: &str) {
    let code = error.code().map(|code| code.code().to_owned());
    assert!(code.as_deref().is_some_and(|code| ["40001", "40P01"].contains(&code)), "{sql}: {error:?}");
}

/// Writes its own rows until `is_over`; returns their expected state and the number of writes.
async fn write(client: Client, number: i64, is_over: Arc<AtomicBool>) -> (BTreeMap<i64, i32>, u64) {
    let random = SeededRandom::new(number.unsigned_abs() + 1);
    let below = |end: u64| i64::try_from(random.next_u64() % end).expect("small");
    let (mut rows, mut done) = (BTreeMap::new(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let key = number * RANGE + below(KEYS);
        let value = i32::try_from(below(VALUES)).expect("small");
        let sql = match rows.contains_key(&key) {
            false => format!("INSERT INTO test (id, value) VALUES ({key}, {value})"),
            true if below(3) == 0 => format!("DELETE FROM test WHERE id = {key}"),
            true => format!("UPDATE test SET value = {value} WHERE id = {key}"),
        };
        match client.execute(&sql, &[]).await {
            Ok(count) => {
                assert_eq!(count, 1, "{sql}");
                done += 1;
                if sql.starts_with("DELETE") {
                    rows.remove(&key)
                } else {
                    rows.insert(key, value)
                };
            }
            Err(error) => expect_conflict(&error, &sql),
        }
    }
    (rows, done)
}
