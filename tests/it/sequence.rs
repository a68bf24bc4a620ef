//! Servers killed with SIGKILL while clients draw numbers from a sequence: no number is returned twice.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::{Server, nightly};

/// Servers killed in an ordinary run and in a nightly one.
const KILLS: usize = 8;
const KILLS_NIGHTLY: usize = 200;
/// Longest life of a server, in milliseconds.
const LIFE_MAX: u64 = 400;
/// Minimum of numbers drawn in total.
const DRAWN_MIN: usize = 100;
/// Number of concurrent clients.
const CLIENTS: usize = 4;
/// Maximum of numbers skipped by a kill: reserved ones, and drawn ones whose answer was lost.
const SKIPPED_MAX: i64 = 32 + 100 * CLIENTS as i64;

#[tokio::test(flavor = "multi_thread")]
async fn no_number_of_a_sequence_comes_twice_whenever_the_server_is_killed() {
    let folder = TempDir::with_prefix("kiln-sequence-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    client.batch_execute("CREATE SEQUENCE s").await.expect("a sequence can be made");
    let (clock, random) = (SystemClock::new(), SeededRandom::new(0x5E9));
    let mut seen: BTreeSet<i64> = BTreeSet::new();
    let kills = if nightly() { KILLS_NIGHTLY } else { KILLS };
    for kill in 0.. {
        // If servers return few numbers in their lives, more servers are run.
        if kills <= kill && DRAWN_MIN < seen.len() {
            break;
        }
        assert!(kill < 20 * kills, "the clients come to do something: {} numbers", seen.len());
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let client = server.connect().await;
            // Some clients draw one number at a time, some many, some in transactions that they roll back.
            clients.push(tokio::spawn(async move { draw(&client, number).await }));
        }
        let before = seen.last().copied().unwrap_or(0);
        clock.sleep(Duration::from_millis(20 + random.next_u64() % LIFE_MAX)).await;
        server.kill();
        for numbers in join_all(clients).await {
            for number in numbers.expect("clients do not panic") {
                assert!(seen.insert(number), "kill {kill}: {number} came twice");
                assert!(before < number, "kill {kill}: {number} came after {before}");
            }
        }
        let least = seen.range(before + 1..).next().copied().unwrap_or(before);
        assert!(least <= before + SKIPPED_MAX, "kill {kill}: after {before} came {least}");
        server = Server::start_on(folder.path(), &[]);
    }
}

/// Draws numbers until the server is gone.
async fn draw(client: &Client, number: usize) -> Vec<i64> {
    let mut drawn = Vec::new();
    loop {
        let sql = match number % 3 {
            0 => "SELECT nextval('s')",
            1 => "SELECT nextval('s') FROM generate_series(1, 50)",
            _ => "BEGIN; SELECT nextval('s'); ROLLBACK",
        };
        let Ok(messages) = client.simple_query(sql).await else { return drawn };
        drawn.extend(messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse::<i64>().ok(),
            _ => None,
        }));
    }
}
