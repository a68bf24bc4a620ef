//! kill -9 at any moment, again and again: what clients were told is there afterwards, and nothing else.

use std::time::Duration;

use tempfile::TempDir;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use super::failpoints::check_restored;
use super::ledger::Ledger;
use crate::kill::{FORGETFUL, check_files};
use crate::server::{Server, nightly};

/// Servers killed: in every run, unless the machine is slow, and at night.
const KILLS: u64 = 24;
const KILLS_NIGHTLY: u64 = 1_000;
const TIME_MAX: Duration = Duration::from_secs(75);
/// A server lives at most so long.
const LIFE_MS: u64 = 900;

/// What is acknowledged is in the storage within a second; the others that the machine is busy with get one more.
const COPIED: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_has_copied_what_it_acknowledged_a_while_ago() {
    let folder = TempDir::with_prefix("kiln-kills-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &FORGETFUL);
    let mut ledger = Ledger::create(&server.connect().await).await;
    let pid = server.pid().to_string();
    let killer = tokio::spawn(async move {
        SystemClock::new().sleep(3 * COPIED).await;
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill can be run")
    });
    ledger.work(&server, 5, u64::MAX).await;
    killer.await.expect("the killer does not panic");
    let since = ledger.now() - COPIED;
    server.kill();
    check_restored(folder.path(), ledger, since, "killed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_nothing_and_invent_nothing() {
    let given = std::env::var("KILN_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills = given.unwrap_or_else(|| if nightly() { KILLS_NIGHTLY } else { KILLS });
    let clock = SystemClock::new();
    let random = SeededRandom::new(0x1D1E);
    let folder = TempDir::with_prefix("kiln-kills-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &FORGETFUL);
    let mut ledger = Ledger::create(&server.connect().await).await;
    let mut done = 0;
    while done < kills && (given.is_some() || nightly() || clock.monotonic() < TIME_MAX) {
        let life = Duration::from_millis(30 + random.next_u64() % LIFE_MS);
        let pid = server.pid().to_string();
        let killer = tokio::spawn(async move {
            SystemClock::new().sleep(life).await;
            std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill can be run")
        });
        ledger.work(&server, done, u64::MAX).await;
        killer.await.expect("the killer does not panic");
        server.kill();
        done += 1;
        server = Server::start_on(folder.path(), &FORGETFUL);
        let client = server.connect().await;
        ledger.check(&client, &format!("kill {done}")).await;
        if done.is_multiple_of(10) {
            check_files(&client, &folder.path().join("storage"), &clock).await;
        }
    }
    let (acknowledged, doubted, happened) = ledger.counts();
    println!(
        "{done} kills in {:?}: {acknowledged} transactions acknowledged, {doubted} in doubt, {happened} of which had happened; \
         0 lost, 0 invented",
        clock.monotonic()
    );
    assert!(done < acknowledged && 0 < doubted, "the workers come to do something");
}
