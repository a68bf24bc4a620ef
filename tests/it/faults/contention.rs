//! Many clients compete for the same rows and keys while rows are flushed: every acknowledgement counts exactly once.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio_postgres::{Client, Error};
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::{Server, nightly};

const CLIENTS: u64 = 32;
const SPAN: Duration = Duration::from_secs(8);
const SPAN_NIGHTLY: Duration = Duration::from_secs(60);
const ACCOUNTS: u64 = 100;
const MONEY: i64 = 1_000;
const COUNTERS: u64 = 4;
const KEYS: u64 = 200;

/// Counts of one client.
#[derive(Debug, Clone, Copy, Default)]
struct ClientCounts {
    commits: u64,
    /// Transactions retried after a conflict.
    retries: u64,
    /// Count specific to the workload.
    counted: i64,
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_between_the_accounts_of_many() {
    let create = format!(
        "CREATE TABLE account (id bigint PRIMARY KEY ENFORCED, money bigint NOT NULL); \
         INSERT INTO account SELECT g, {MONEY} FROM generate_series(0, {}) AS g",
        ACCOUNTS - 1
    );
    let (server, _) = run_clients("money", &create, async |client, random, _, done| {
        let (from, to, money) = (below(random, ACCOUNTS), below(random, ACCOUNTS), below(random, 100));
        let moved = client
            .batch_execute(&format!(
                "BEGIN; UPDATE account SET money = money - {money} WHERE id = {from}; \
                 UPDATE account SET money = money + {money} WHERE id = {to}; COMMIT"
            ))
            .await;
        count(client, done, moved).await;
    })
    .await;
    let sql = "SELECT sum(money)::bigint, count(*), count(DISTINCT id) FROM account";
    let row = server.connect().await.query_one(sql, &[]).await.expect("the server answers");
    let accounts = i64::try_from(ACCOUNTS).expect("few accounts");
    assert_eq!((row.get(0), row.get(1), row.get(2)), (accounts * MONEY, accounts, accounts));
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_count_every_acknowledged_increment_once() {
    let create = format!(
        "CREATE TABLE counter (id bigint PRIMARY KEY ENFORCED, n bigint NOT NULL); \
         INSERT INTO counter SELECT g, 0 FROM generate_series(0, {}) AS g",
        COUNTERS - 1
    );
    let (server, done) = run_clients("counter", &create, async |client, random, _, done| {
        let id = below(random, COUNTERS);
        let counted = client.batch_execute(&format!("UPDATE counter SET n = n + 1 WHERE id = {id}")).await;
        done.counted += i64::from(counted.is_ok());
        count(client, done, counted).await;
    })
    .await;
    let row = server.connect().await.query_one("SELECT sum(n)::bigint FROM counter", &[]).await;
    assert_eq!(row.expect("the server answers").get::<_, i64>(0), done.counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_owner_at_a_time() {
    let create = "CREATE TABLE slot (k bigint PRIMARY KEY ENFORCED, owner bigint NOT NULL)";
    let (server, done) = run_clients("unique key", create, async |client, random, number, done| {
        let key = below(random, KEYS);
        let conflict = if below(random, 2) == 0 { " ON CONFLICT DO NOTHING" } else { "" };
        let taken = client.execute(&format!("INSERT INTO slot VALUES ({key}, {number}){conflict}"), &[]).await;
        let is_ours = match taken {
            Ok(rows) => rows == 1,
            Err(error) if error.code().is_some_and(|code| code.code() == "23505") => false,
            Err(error) => return count(client, done, Err(error)).await,
        };
        done.commits += u64::from(is_ours);
        done.counted += i64::from(is_ours);
        // The owner of a key releases it half of the time; until then no one else gets it.
        if is_ours && below(random, 2) == 0 {
            let given = client.execute(&format!("DELETE FROM slot WHERE k = {key} AND owner = {number}"), &[]).await;
            match given {
                Ok(rows) => {
                    assert_eq!(rows, 1, "key {key} was client {number}'s");
                    done.commits += 1;
                    done.counted -= 1;
                }
                Err(error) => count(client, done, Err(error)).await,
            }
        }
        // Keys run out, so a client sometimes releases all of its keys.
        if below(random, 50) == 0 {
            match client.execute(&format!("DELETE FROM slot WHERE owner = {number}"), &[]).await {
                Ok(rows) => {
                    done.commits += 1;
                    done.counted -= i64::try_from(rows).expect("few keys");
                }
                Err(error) => count(client, done, Err(error)).await,
            }
        }
    })
    .await;
    let sql = "SELECT count(*), count(DISTINCT k) FROM slot";
    let row = server.connect().await.query_one(sql, &[]).await.expect("the server answers");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (done.counted, done.counted));
}

/// Runs `step` repeatedly in many clients while rows are flushed; returns the server and the summed counts.
async fn run_clients(
    what: &str,
    create: &str,
    step: impl AsyncFn(&Client, &SeededRandom, u64, &mut ClientCounts),
) -> (Server, ClientCounts) {
    let server = Server::start();
    server.connect().await.batch_execute(create).await.expect("the tables are new");
    let span = if nightly() { SPAN_NIGHTLY } else { SPAN };
    let clock = Arc::new(SystemClock::new());
    let settling = server.connect().await;
    let settler = tokio::spawn(async move {
        while settling.batch_execute("VACUUM").await.is_ok() {
            SystemClock::new().sleep(Duration::from_millis(50)).await;
        }
    });
    let clients = join_all((0..CLIENTS).map(|_| server.connect())).await;
    let start = clock.monotonic();
    let step = &step;
    let working = clients.iter().zip(0..).map(|(client, number)| {
        let clock = Arc::clone(&clock);
        async move {
            let random = SeededRandom::new(number);
            let mut done = ClientCounts::default();
            while clock.monotonic() - start < span {
                step(client, &random, number, &mut done).await;
            }
            done
        }
    });
    let mut all = ClientCounts::default();
    for done in join_all(working).await {
        all.commits += done.commits;
        all.retries += done.retries;
        all.counted += done.counted;
    }
    assert!(!settler.is_finished(), "{what}: rows settle all the time");
    settler.abort();
    let seconds = (clock.monotonic() - start).as_secs_f64();
    println!(
        "{what}: {CLIENTS} clients, {:.0} commits/s, {} retries in {seconds:.1} s",
        all.commits as f64 / seconds,
        all.retries
    );
    assert!(CLIENTS < all.commits, "{what}: the clients come to do something");
    (server, all)
}

/// Counts a commit or a retry; no other outcome is allowed.
async fn count(client: &Client, done: &mut ClientCounts, outcome: Result<(), Error>) {
    match outcome {
        Ok(()) => done.commits += 1,
        Err(error) => {
            let is_conflict = error.code().is_some_and(|code| ["40001", "40P01"].contains(&code.code()));
            assert!(is_conflict, "{error:?}");
            done.retries += 1;
            client.batch_execute("ROLLBACK").await.expect("the server answers");
        }
    }
}

fn below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}
