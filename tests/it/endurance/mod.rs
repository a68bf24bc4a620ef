//! Hostile statements of an unprivileged role beside well-behaved clients, with two and eight threads, with and
//! without worker processes: no session ends, none waits long, no answer is wrong, and memory is released.
//!
//! - `mod.rs`: the setups, and the checks after each.
//! - `hostile.rs`: the hostile statements, and their allowed outcomes.
//! - `clients.rs`: the well-behaved clients.

mod clients;
mod hostile;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures::future::join_all;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::cluster::wait_until;
use crate::memory::resident_bytes;
use crate::processes::children;
use crate::server::{Server, nightly};

/// Query threads of the server, and number of worker processes. `KILN_ATTACK_SETUP` selects one by its number from 0.
const SETUPS: [(u32, u32); 4] = [(2, 0), (8, 0), (2, 4), (8, 4)];
/// Seconds per setup, unless `KILN_ATTACK_SECONDS` is set.
const ATTACK_SECONDS: u64 = 15 * 60;
const ATTACKERS: u64 = 4;
const CLIENTS: u64 = 20;
/// Number of requests that never end.
const HALF_REQUESTS: usize = 40;
/// Longest allowed `SELECT 1`, on an otherwise idle machine.
const LONGEST: Duration = Duration::from_secs(1);
/// Time within which freed memory returns to the system: the allocator keeps it for some seconds.
const RETURNED: Duration = Duration::from_secs(60);
/// Allowed growth of resident memory by the attack: allocators keep some of what is freed.
const GROWTH_BYTES_MAX: u64 = 512 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn hostile_statements_end_freeze_and_spoil_nothing() {
    if !nightly() {
        println!("skipped: an hour of attacks runs at night, by make nightly");
        return;
    }
    let chosen = match number_from("KILN_ATTACK_SETUP") {
        Some(number) => &SETUPS[usize::try_from(number).expect("it is small")..][..1],
        None => &SETUPS[..],
    };
    for (threads, workers) in chosen.iter().copied() {
        attack(threads, workers).await;
    }
}

/// Reads a number from an environment variable.
fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

async fn attack(threads: u32, workers: u32) {
    let name = format!("{threads} threads, {workers} workers");
    let count = threads.to_string();
    let server = Server::start_with(&["--threads", &count], &[]);
    let boss = server.connect().await;
    prepare(&boss, workers).await;
    let processes = children(server.pid());
    let before = resident_bytes(server.pid());

    let (is_over, clock) = (Arc::new(AtomicBool::new(false)), SystemClock::new());
    let half_requests = clients::half_requests(&server, HALF_REQUESTS);
    let mut attackers = Vec::new();
    for number in 0..ATTACKERS {
        attackers.push(tokio::spawn(hostile::attack(server.pg_port, number, workers > 0, Arc::clone(&is_over))));
    }
    let mut asking = Vec::new();
    for number in 0..CLIENTS {
        asking.push(tokio::spawn(clients::run_client(server.pg_port, number, workers > 0, Arc::clone(&is_over))));
    }
    let span_s = number_from("KILN_ATTACK_SECONDS").unwrap_or(ATTACK_SECONDS);
    clock.sleep(Duration::from_secs(span_s)).await;
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut longest = Duration::ZERO;
    let mut answered = 0;
    for client in join_all(asking).await {
        let told = client.unwrap_or_else(|error| panic!("{name}: {error}"));
        longest = longest.max(told.longest);
        answered += told.answered;
    }
    let attacks: u64 = join_all(attackers)
        .await
        .into_iter()
        .map(|count| count.unwrap_or_else(|error| panic!("{name}: {error}")))
        .sum();
    drop(half_requests);
    println!("{name}: {attacks} attacks beside {answered} answers, the longest SELECT 1 took {longest:?}");
    assert!(0 < attacks && CLIENTS <= answered, "{name}: both come to do something");
    assert!(longest < LONGEST, "{name}: a SELECT 1 took {longest:?}");
    assert_eq!(children(server.pid()), processes, "{name}: no worker has ended");
    wait_until(&boss, "SELECT coalesce(sum(memory_bytes), 0) = 0 FROM sys.query WHERE pid <> pg_backend_pid()").await;
    let ended = clock.monotonic();
    let mut after = resident_bytes(server.pid());
    while before + GROWTH_BYTES_MAX <= after && clock.monotonic() - ended < RETURNED {
        clock.sleep(Duration::from_secs(1)).await;
        after = resident_bytes(server.pid());
    }
    let waited = clock.monotonic() - ended;
    println!("{name}: {} MB before, {} MB after, and {waited:?}", before >> 20, after >> 20);
    assert!(after < before + GROWTH_BYTES_MAX, "{name}: {} MB before, {} MB after", before >> 20, after >> 20);
    assert!(server.stop(), "{name}: it ends cleanly");
}

/// Creates tables, an unprivileged role, and a cluster of worker processes for all sessions.
async fn prepare(boss: &Client, workers: u32) {
    let sql = "CREATE ROLE low LOGIN; CREATE SEQUENCE s;
               CREATE TABLE big AS SELECT g::int AS id, g % 10 AS k, 'text ' || g AS t FROM generate_series(1, 200000) AS g;
               CREATE TABLE small (id int PRIMARY KEY ENFORCED, v int NOT NULL); INSERT INTO small SELECT g, 0 FROM generate_series(1, 100) AS g;
               CREATE TABLE a (id int, v int); CREATE TABLE b (id int, v int);
               INSERT INTO a VALUES (7, 1); INSERT INTO b VALUES (1007, 1); VACUUM";
    boss.batch_execute(sql).await.expect("the tables are new");
    // The attacker may read what it owns; the clients are superusers.
    for table in ["big", "small", "a", "b"] {
        boss.batch_execute(&format!("ALTER TABLE {table} OWNER TO low")).await.expect("the table is there");
    }
    if workers > 0 {
        let cluster = format!(
            "CREATE CLUSTER c WITH (NODE_COUNT = {workers}, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL); GRANT USAGE ON CLUSTER c TO low"
        );
        for sql in cluster.split("; ") {
            boss.batch_execute(sql).await.expect("a cluster can be made");
        }
        wait_until(
            boss,
            &format!("SELECT count(*) = {workers} FROM sys.worker WHERE cluster = 'c' AND state = 'ready'"),
        )
        .await;
    }
}

/// Opens a session, on the cluster if there is one.
async fn session(port: u16, role: &str, is_on_workers: bool) -> Client {
    let address = format!("host=127.0.0.1 port={port} user={role} dbname=kiln");
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await.expect("logins work");
    tokio::spawn(connection);
    if is_on_workers {
        let sql = "USE CLUSTER c; SET min_parallel_table_scan_size = 0";
        client.batch_execute(sql).await.expect("the cluster is there");
    }
    client
}
