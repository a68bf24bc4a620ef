//! Money moves between accounts while rows are flushed and compacted and the server is killed: the sum stays the
//! same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::{Server, nightly};

const ACCOUNTS: i64 = 100;
const MONEY: i64 = 1_000;
const CLIENTS: u64 = 6;
const KILLS: usize = 4;
const KILLS_NIGHTLY: usize = 100;
/// Life of a server, prolonged on a machine where nothing has happened by then.
const LIFE: Duration = Duration::from_millis(1_500);
const LIFE_MAX: Duration = Duration::from_secs(120);
/// Minimum of acknowledged transfers and of reads in each server's life.
const TRANSFERS_MIN: u64 = 3;
const LOOKS_MIN: u64 = 2;

#[tokio::test(flavor = "multi_thread")]
async fn money_is_neither_lost_nor_made_while_rows_settle_and_the_server_is_killed() {
    let folder = TempDir::with_prefix("kiln-rows-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &[]);
    let fill = format!(
        "CREATE TABLE account (id bigint PRIMARY KEY ENFORCED, money bigint NOT NULL); \
         INSERT INTO account SELECT g, {MONEY} FROM generate_series(1, {ACCOUNTS}) AS g"
    );
    server.connect().await.batch_execute(&fill).await.expect("accounts can be opened");
    for kill in 0..if nightly() { KILLS_NIGHTLY } else { KILLS } {
        let (transfers, looks) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut working = Vec::new();
        for number in 0..CLIENTS {
            let (client, done) = (server.connect().await, Arc::clone(&transfers));
            working.push(tokio::spawn(async move { transfer(&client, kill as u64 * CLIENTS + number, &done).await }));
        }
        let (settling, looking) = (server.connect().await, server.connect().await);
        let settler = tokio::spawn(async move { while settling.batch_execute("VACUUM account").await.is_ok() {} });
        let looked = Arc::clone(&looks);
        let reader = tokio::spawn(async move {
            while let Some(found) = read_totals(&looking).await {
                let look = looked.fetch_add(1, Ordering::Relaxed);
                assert_eq!(found, (ACCOUNTS * MONEY, ACCOUNTS, ACCOUNTS), "kill {kill}, look {look}");
            }
        });
        let clock = SystemClock::new();
        clock.sleep(LIFE).await;
        while transfers.load(Ordering::Relaxed) < TRANSFERS_MIN || looks.load(Ordering::Relaxed) < LOOKS_MIN {
            assert!(
                clock.monotonic() < LIFE_MAX,
                "clients come to do something: {transfers:?} transfers, {looks:?} looks"
            );
            clock.sleep(Duration::from_millis(20)).await;
        }
        server.kill();
        for client in working {
            client.await.expect("clients do not panic");
        }
        settler.await.expect("VACUUM goes on until the server is gone");
        reader.await.expect("every look adds up");
        server = Server::start_on(folder.path(), &[]);
        let found = read_totals(&server.connect().await).await;
        assert_eq!(found, Some((ACCOUNTS * MONEY, ACCOUNTS, ACCOUNTS)), "after kill {kill}");
    }
}

/// Moves money until the server is gone, and counts the acknowledged transfers.
async fn transfer(client: &Client, seed: u64, done: &AtomicU64) {
    let random = SeededRandom::new(seed);
    let account = || i64::try_from(random.next_u64() % ACCOUNTS.cast_unsigned()).expect("few accounts") + 1;
    loop {
        let (from, to, money) = (account(), account(), account());
        let moved = client
            .batch_execute(&format!(
                "BEGIN; UPDATE account SET money = money - {money} WHERE id = {from}; \
                 UPDATE account SET money = money + {money} WHERE id = {to}; COMMIT"
            ))
            .await;
        match moved {
            Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
            // Deadlock: one of the two transactions is retried.
            Err(error) if error.code().is_some_and(|code| code.code() == "40P01") => {
                if client.batch_execute("ROLLBACK").await.is_err() {
                    return;
                }
            }
            Err(error) => {
                assert!(error.as_db_error().is_none_or(|error| error.code().code().starts_with("57P")), "{error:?}");
                return;
            }
        }
    }
}

/// Returns the sum of money, the number of rows, and the number of accounts; `None` when the server is gone.
async fn read_totals(client: &Client) -> Option<(i64, i64, i64)> {
    let row = client.query_one("SELECT sum(money)::bigint, count(*), count(DISTINCT id) FROM account", &[]).await;
    row.ok().map(|row| (row.get(0), row.get(1), row.get(2)))
}
