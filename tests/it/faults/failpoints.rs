//! Servers that die, or fail, at every failpoint.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use futures::{StreamExt, stream};
use tempfile::TempDir;
use types::{Failpoint, SystemClock};

use super::ledger::Ledger;
use crate::kill::{NO_RETENTION, check_files};
use crate::server::{Server, kiln};

/// Number of times that a server reaches a failpoint before it dies there.
const TIMES: [u64; 3] = [1, 2, 3];
/// Transactions per worker in a round.
const TRANSACTIONS: u64 = 40;
/// Rounds within which a server must reach a failpoint; background work is late on a busy machine.
const ROUNDS_MAX: u64 = 20;
/// Failpoints that are reached once in a server's life.
const ONCE_PER_LIFE: [Failpoint; 7] = [
    Failpoint::StoreMade,
    Failpoint::Claimed,
    Failpoint::CatalogMade,
    Failpoint::Recovered,
    Failpoint::RowIdsReserved,
    Failpoint::UploadsDeleted,
    Failpoint::GarbageDeleted,
];
/// Number of concurrent servers.
const AT_ONCE: usize = 3;
/// Like [`NO_RETENTION`], with constant checkpoints, each of which makes older history obsolete.
const CHECKPOINTING: [&str; 6] =
    [NO_RETENTION[0], NO_RETENTION[1], NO_RETENTION[2], NO_RETENTION[3], "--checkpoint-interval", "1"];
const ABORT: i32 = 6;

/// Failpoint at which a server ends.
#[derive(Debug, Clone, Copy)]
struct FailpointPlan {
    point: Failpoint,
    time: u64,
    fails: bool,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_at_a_failpoint_keeps_what_it_acknowledged() {
    let folder = TempDir::with_prefix("kiln-failpoint-").expect("a temporary folder can be made");
    let ledger = prepare(folder.path()).await;
    let mut plans = Vec::new();
    for &point in Failpoint::serving() {
        let times = if ONCE_PER_LIFE.contains(&point) { &TIMES[..1] } else { &TIMES[..] };
        plans.extend(times.iter().map(|&time| FailpointPlan { point, time, fails: false }));
        if point.can_fail() {
            plans.extend(times.iter().map(|&time| FailpointPlan { point, time, fails: true }));
        }
    }
    let count = plans.len();
    let runs = plans.into_iter().map(|plan| {
        let (ledger, from) = (ledger.clone(), folder.path().to_owned());
        async move {
            let run = tokio::spawn(async move { end_at(plan, &from, ledger).await });
            (plan, run.await.unwrap_or_else(|error| panic!("{plan:?}: {error}")))
        }
    });
    let ends: Vec<(FailpointPlan, bool)> = stream::iter(runs).buffer_unordered(AT_ONCE).collect().await;
    let unmet: Vec<_> = ends.iter().filter(|(_, met)| !met).map(|(plan, _)| plan).collect();
    println!("not met: {unmet:?}");
    let met = ends.iter().filter(|(_, met)| *met).count();
    println!("{met} of {count} failpoints and times were met");
    let never: Vec<_> = ends.iter().filter(|(plan, met)| plan.time == 1 && !met).map(|(plan, _)| plan).collect();
    assert!(never.is_empty(), "the workload never comes to {never:?}");
}

/// Prepares a folder with tables and work for the cleaner: uploads of rolled-back and unfinished transactions, and
/// unreferenced objects and rows.
async fn prepare(folder: &Path) -> Ledger {
    let server = Server::start_on(folder, &CHECKPOINTING);
    let client = server.connect().await;
    let mut ledger = Ledger::create(&client).await;
    ledger.work(&server, 1, 40).await;
    let load = "INSERT INTO waste SELECT g FROM generate_series(1, 30000) AS g";
    client.batch_execute("CREATE TABLE waste (n bigint)").await.expect("the table is new");
    for sql in [load, "TRUNCATE waste", load, "TRUNCATE waste", load, "DROP TABLE waste"] {
        client.batch_execute(sql).await.expect("nothing is in the way");
    }
    client.batch_execute("CREATE TABLE waste (n bigint)").await.expect("the name is free again");
    for _ in 0..3 {
        client.batch_execute(&format!("BEGIN; {load}; ROLLBACK")).await.expect("nothing is in the way");
        for sql in ["INSERT INTO waste VALUES (1)", "VACUUM waste", "DROP TABLE waste", "CREATE TABLE waste (n bigint)"]
        {
            client.batch_execute(sql).await.expect("nothing is in the way");
        }
    }
    ledger.check(&client, "before all").await;
    ledger.wait_until_copied(&client).await;
    // The cleaner has not reached these uploads, however slow the machine.
    let unfinished = server.connect().await;
    unfinished.batch_execute(&format!("BEGIN; {load}")).await.expect("nothing is in the way");
    server.kill();
    ledger
}

/// Runs a server on a copy of the folder until it ends or fails as planned, then checks what the next server finds.
///
/// Returns whether the failpoint was reached.
async fn end_at(plan: FailpointPlan, from: &Path, mut ledger: Ledger) -> bool {
    let folder = TempDir::with_prefix("kiln-failpoint-").expect("a temporary folder can be made");
    let is_first_start = matches!(plan.point, Failpoint::StoreMade | Failpoint::CatalogMade);
    if !is_first_start {
        copy(from, folder.path());
    }
    let ending = if plan.fails { ":error" } else { "" };
    let set = format!("{}:{}{ending}", plan.point.name(), plan.time);
    let variables = [("KILN_FAILPOINT", set.as_str())];
    let was_met = match Server::try_start_on_with(folder.path(), &CHECKPOINTING, &variables) {
        Err(log) => is_failpoint_logged(&log),
        Ok(mut server) => {
            let rounds = if plan.time == 1 && !is_first_start { ROUNDS_MAX } else { 1 };
            let mut ended = None;
            for round in 0..rounds {
                if !is_first_start {
                    ledger.work(&server, plan.time + 100 * round, TRANSACTIONS).await;
                }
                ended = server.exit_status().await;
                if ended.is_some() || is_failpoint_logged(&server.log()) {
                    println!("{set}: over in round {round}");
                    break;
                }
            }
            match ended {
                Some(ended) if !plan.fails => {
                    assert_eq!(ended.signal(), Some(ABORT), "{set}: {ended}");
                    true
                }
                _ => is_failpoint_logged(&server.log()),
            }
        }
    };
    if plan.time == 1 && !is_first_start {
        check_restored(folder.path(), ledger.clone(), Duration::ZERO, &set).await;
    }
    let server = Server::start_on(folder.path(), &NO_RETENTION);
    let client = server.connect().await;
    check_files(&client, &folder.path().join("storage"), &SystemClock::new()).await;
    if is_first_start {
        ledger = Ledger::create(&client).await;
    }
    ledger.check(&client, &set).await;
    // The recovered server continues to work.
    ledger.work(&server, 7, 5).await;
    ledger.check(&client, &format!("{set}, and then")).await;
    was_met
}

/// Checks that a warehouse restored from the storage alone has everything archived, and continues to work.
pub(super) async fn check_restored(folder: &Path, mut ledger: Ledger, since: Duration, moment: &str) {
    let house = TempDir::with_prefix("kiln-restored-").expect("a temporary folder can be made");
    let (data, storage) = (house.path().join("data"), house.path().join("storage"));
    copy(&folder.join("storage"), &storage);
    let restored = restore(&data, &storage, None);
    assert!(restored.status.success(), "{moment}: {}", output_text(&restored));
    let url = format!("file://{}", storage.display());
    let server = Server::start_on(&data, &[&NO_RETENTION[..], &["--storage", &url]].concat());
    let client = server.connect().await;
    ledger.check_restored(&client, since, &format!("{moment}, restored")).await;
    ledger.work(&server, 11, 3).await;
    ledger.check(&client, &format!("{moment}, restored, and then")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_ends_at_a_failpoint_is_done_again() {
    let folder = TempDir::with_prefix("kiln-failpoint-").expect("a temporary folder can be made");
    let ledger = prepare(folder.path()).await;
    for &point in Failpoint::restoring() {
        let house = TempDir::with_prefix("kiln-restored-").expect("a temporary folder can be made");
        let (data, storage) = (house.path().join("data"), house.path().join("storage"));
        copy(&folder.path().join("storage"), &storage);
        let url = format!("file://{}", storage.display());
        let arguments = [&NO_RETENTION[..], &["--storage", &url]].concat();
        let set = format!("{}:1", point.name());
        let mut ledger = ledger.clone();
        let first = restore(&data, &storage, Some(&set));
        if first.status.success() {
            // The remaining failpoint is in the first start.
            let started = Server::try_start_on_with(&data, &arguments, &[("KILN_FAILPOINT", set.as_str())]);
            let log = match started {
                Err(log) => log,
                Ok(mut server) => {
                    ledger.work(&server, 3, 5).await;
                    let ended = server.exit_status().await.unwrap_or_else(|| panic!("{set} is not met"));
                    assert_eq!(ended.signal(), Some(ABORT), "{set}: {ended}");
                    server.log()
                }
            };
            assert!(is_failpoint_logged(&log), "{set}: {log}");
        } else {
            assert_eq!(first.status.signal(), Some(ABORT), "{set}: {}", output_text(&first));
            let refused = Server::try_start_on(&data, &arguments).err().unwrap_or_else(|| panic!("{set}: it starts"));
            assert!(refused.contains("was cut off"), "{set}: {refused}");
            let again = restore(&data, &storage, None);
            assert!(again.status.success(), "{set}: {}", output_text(&again));
        }
        let server = Server::start_on(&data, &arguments);
        let client = server.connect().await;
        ledger.check(&client, &set).await;
        ledger.work(&server, 5, 5).await;
        ledger.check(&client, &format!("{set}, and then")).await;
        ledger.wait_until_copied(&client).await;
        server.kill();
        // Restores again, from what the restored warehouse has written.
        check_restored(house.path(), ledger, Duration::ZERO, &format!("{set}, lost again")).await;
    }
}

fn restore(data: &Path, storage: &Path, failpoint: Option<&str>) -> Output {
    let mut command = Command::new(kiln());
    command.args(["restore", "--storage", &format!("file://{}", storage.display()), "--data"]).arg(data);
    command.envs(failpoint.map(|set| ("KILN_FAILPOINT", set)));
    command.output().expect("kiln runs")
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn is_failpoint_logged(log: &str) -> bool {
    log.contains("failpoint reached")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("the folder reads");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("files can be copied");
        }
    }
}
