//! Servers killed with SIGKILL at random times: acknowledged changes exist afterwards, and no others.

use std::time::Duration;

use tempfile::TempDir;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use super::failpoints::check_restored;
use super::ledger::Ledger;
use crate::kill::{NO_RETENTION, check_files};
use crate::server::{Server, nightly};
use crate::time::until_copied;

/// Servers killed in an ordinary run, limited by [`TIME_MAX`], and in a nightly one. At night several warehouses run
/// in parallel: a server mostly waits, and the checks after a kill grow with the data.
const KILLS: u64 = 24;
const KILLS_NIGHTLY: u64 = 1_000;
const WAREHOUSES_NIGHTLY: u64 = 4;
const TIME_MAX: Duration = Duration::from_secs(75);
/// Longest life of a server in milliseconds, on a machine fast enough to do work meanwhile.
const LIFE_MS: u64 = 900;

/// Time that clients write before a server is killed.
const WRITING: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_has_copied_what_it_acknowledged_a_while_ago() {
    let folder = TempDir::with_prefix("kiln-kills-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &NO_RETENTION);
    let mut ledger = Ledger::create(&server.connect().await).await;
    let pid = server.pid().to_string();
    let (onlooker, clock) = (server.connect().await, ledger.clock());
    // Acknowledged changes reach the storage while clients continue: only the newest are at risk.
    let killer = tokio::spawn(async move {
        clock.sleep(WRITING).await;
        let since = clock.monotonic();
        until_copied(&onlooker).await;
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill can be run");
        since
    });
    ledger.work(&server, 5, u64::MAX).await;
    let since = killer.await.expect("the killer does not panic");
    server.kill();
    check_restored(folder.path(), ledger, since, "killed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_nothing_and_invent_nothing() {
    let given = std::env::var("KILN_KILLS").ok().and_then(|kills| kills.parse().ok());
    let kills: u64 = given.unwrap_or_else(|| if nightly() { KILLS_NIGHTLY } else { KILLS });
    let time_max = (given.is_none() && !nightly()).then_some(TIME_MAX);
    let warehouses = if nightly() { WAREHOUSES_NIGHTLY } else { 1 };
    let clock = SystemClock::new();
    let killing: Vec<_> =
        (0..warehouses).map(|seed| tokio::spawn(kill_again_and_again(seed, kills / warehouses, time_max))).collect();
    let mut total = KillCounts::default();
    for killed in killing {
        total.add(&killed.await.expect("nothing is lost or invented"));
    }
    let KillCounts { kills, acknowledged, doubted, happened } = total;
    println!(
        "{kills} kills in {:?}: {acknowledged} transactions acknowledged, {doubted} in doubt, {happened} of which had happened; \
         0 lost, 0 invented",
        clock.monotonic()
    );
    assert!(kills < acknowledged && 0 < doubted, "the workers come to do something");
}

/// Counts of kills, and of transactions by outcome.
#[derive(Debug, Default)]
struct KillCounts {
    kills: u64,
    acknowledged: u64,
    doubted: u64,
    happened: u64,
}

impl KillCounts {
    fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.acknowledged += other.acknowledged;
        self.doubted += other.doubted;
        self.happened += other.happened;
    }
}

/// Kills the servers of one warehouse while clients write, and checks everything after each kill.
async fn kill_again_and_again(seed: u64, kills: u64, time_max: Option<Duration>) -> KillCounts {
    let clock = SystemClock::new();
    let random = SeededRandom::new(0x1D1E + seed);
    let folder = TempDir::with_prefix("kiln-kills-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &NO_RETENTION);
    let mut ledger = Ledger::create(&server.connect().await).await;
    let mut done = 0;
    let mut life_ms = LIFE_MS;
    while done < kills && time_max.is_none_or(|time_max| clock.monotonic() < time_max) {
        // Servers that achieve nothing in that time get longer lives.
        if ledger.counts().0 <= done {
            life_ms *= 2;
        }
        let life = Duration::from_millis(30 + random.next_u64() % life_ms);
        let pid = server.pid().to_string();
        let killer = tokio::spawn(async move {
            SystemClock::new().sleep(life).await;
            std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill can be run")
        });
        ledger.work(&server, done, u64::MAX).await;
        killer.await.expect("the killer does not panic");
        server.kill();
        done += 1;
        server = Server::start_on(folder.path(), &NO_RETENTION);
        let client = server.connect().await;
        ledger.check(&client, &format!("warehouse {seed}, kill {done}")).await;
        if done.is_multiple_of(10) {
            check_files(&client, &folder.path().join("storage"), &clock).await;
        }
    }
    let (acknowledged, doubted, happened) = ledger.counts();
    KillCounts { kills: done, acknowledged, doubted, happened }
}
