//! Servers killed with SIGKILL during loads: acknowledged loads exist entirely, others entirely or not at all, and
//! the cleaner leaves no unreferenced file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::SinkExt;
use tempfile::TempDir;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::{Server, nightly};

/// No time travel, so that unreferenced files are deleted immediately.
pub(crate) const NO_RETENTION: [&str; 4] = ["--retention", "0", "--max-wal-kb", "64"];

/// Servers killed in an ordinary run and in a nightly one.
const KILLS: u64 = 20;
const KILLS_NIGHTLY: u64 = 200;

/// Time after which an ordinary run ends early.
const TIME_MAX: Duration = Duration::from_secs(90);

/// Tables, each loaded by one of the concurrent loads, and rows of the longest load.
const TABLES: [&str; 3] = ["none", "sorted", "clustered"];
const ROWS_MAX: u64 = 60_000;

/// Longest time for the cleaner, which runs at the start of a server.
const CLEANING_TIME_MAX: Duration = Duration::from_secs(60);

/// Expected loads of one table.
#[derive(Debug, Default)]
struct ExpectedLoads {
    /// Loads that must exist, by number, with their rows.
    present: BTreeMap<u64, u64>,
    /// Loads that were not acknowledged before the kill.
    in_doubt: BTreeMap<u64, u64>,
}

/// Outcome of a load, as its client saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoadOutcome {
    Acknowledged,
    /// The connection broke: the outcome is unknown.
    Unknown,
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_loads_are_there_whole_or_not_at_all_and_leave_no_files() {
    let seed = 0x4B11;
    let random = SeededRandom::new(seed);
    let clock = SystemClock::new();
    let folder = TempDir::with_prefix("kiln-kill-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &NO_RETENTION);
    create_tables(&server.connect().await).await;
    let mut expected: BTreeMap<&str, ExpectedLoads> =
        TABLES.iter().map(|&table| (table, ExpectedLoads::default())).collect();

    let whole_load = measure_longest_load(&server, &mut expected, &clock).await;
    let kills = if nightly() { KILLS_NIGHTLY } else { KILLS };
    let mut interrupted = 0;
    for kill in 1..=kills {
        if kill % 5 == 0 {
            let table = TABLES[below(&random, TABLES.len() as u64) as usize];
            server.connect().await.batch_execute(&format!("TRUNCATE {table}")).await.expect("the server runs");
            expected.insert(table, ExpectedLoads::default());
        }
        let loads = TABLES.map(|table| (table, 1 + below(&random, ROWS_MAX)));
        let mut running = Vec::new();
        for (table, rows) in loads {
            let client = server.connect().await;
            running.push((table, rows, tokio::spawn(async move { load(&client, table, kill, rows).await })));
        }
        // From before the first byte until after the last answer.
        let moment = whole_load.mul_f64(below(&random, 1_500) as f64 / 1_000.0);
        clock.sleep(moment).await;
        server.kill();
        for (table, rows, load) in running {
            let expected = expected.get_mut(table).expect("every table is there");
            match load.await.expect("a load does not panic") {
                LoadOutcome::Acknowledged => drop(expected.present.insert(kill, rows)),
                LoadOutcome::Unknown => {
                    interrupted += 1;
                    expected.in_doubt.insert(kill, rows);
                }
            }
        }
        server = Server::start_on(folder.path(), &NO_RETENTION);
        let client = server.connect().await;
        for (table, expected) in &mut expected {
            check_rows(&client, table, expected, &format!("seed {seed}, kill {kill}")).await;
        }
        check_files(&client, &folder.path().join("storage"), &clock).await;
        if !nightly() && TIME_MAX < clock.monotonic() && 0 < interrupted {
            println!("ended after {kill} of {kills} kills: the machine is slow");
            break;
        }
    }
    assert!(0 < interrupted, "some kills meet a load that runs");
    assert!(server.stop(), "after all that it ends cleanly");
}

async fn create_tables(client: &Client) {
    for (table, order) in TABLES.iter().zip(["", "SORT ON (n)", "CLUSTER ON (load, n)"]) {
        let sql = format!("CREATE TABLE {table} (load bigint NOT NULL, n bigint NOT NULL, pad text) {order}");
        client.batch_execute(&sql).await.expect("the table is new");
    }
}

/// Returns the time of the longest load without disturbance.
async fn measure_longest_load(
    server: &Server,
    expected: &mut BTreeMap<&str, ExpectedLoads>,
    clock: &SystemClock,
) -> Duration {
    let client = server.connect().await;
    let start = clock.monotonic();
    for table in TABLES {
        assert_eq!(load(&client, table, 0, ROWS_MAX).await, LoadOutcome::Acknowledged, "nobody kills this one");
        expected.get_mut(table).expect("every table is there").present.insert(0, ROWS_MAX);
    }
    clock.monotonic() - start
}

/// Copies rows into a table; row n of load l is (l, n, some text).
async fn load(client: &Client, table: &str, load: u64, rows: u64) -> LoadOutcome {
    let copy = async {
        let sink = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT csv)")).await?;
        let mut sink = std::pin::pin!(sink);
        for start in (0..rows).step_by(2_000) {
            let lines: String =
                (start..rows.min(start + 2_000)).map(|n| format!("{load},{n},some text for row {n}\n")).collect();
            sink.send(Bytes::from(lines)).await?;
        }
        sink.finish().await
    };
    match copy.await {
        Ok(copied) => {
            assert_eq!(copied, rows, "the server counts what it is sent");
            LoadOutcome::Acknowledged
        }
        Err(error) => {
            // An error from the server would mean that the load failed for another reason.
            assert!(error.as_db_error().is_none(), "only the kill ends a load: {error:?}");
            LoadOutcome::Unknown
        }
    }
}

/// Checks each load of the table, and resolves those in doubt as they are found.
async fn check_rows(client: &Client, table: &str, expected: &mut ExpectedLoads, moment: &str) {
    let sql = format!("SELECT load, count(*), sum(n)::bigint FROM {table} GROUP BY load");
    let rows = client.query(&sql, &[]).await.expect("the server answers");
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let number = |index| u64::try_from(row.get::<_, i64>(index)).expect("counts are not negative");
        found.insert(number(0), (number(1), number(2)));
    }
    let whole = |rows: u64| (rows, rows * (rows - 1) / 2);
    for (&load, &rows) in &expected.present {
        let there = found.remove(&load);
        assert_eq!(there, Some(whole(rows)), "{moment}: load {load} into {table} was acknowledged");
    }
    for (load, rows) in std::mem::take(&mut expected.in_doubt) {
        if let Some(there) = found.remove(&load) {
            assert_eq!(there, whole(rows), "{moment}: load {load} into {table} is there in part");
            expected.present.insert(load, rows);
        }
    }
    assert!(found.is_empty(), "{moment}: {table} has loads that nobody made: {found:?}");
}

/// Waits until exactly the files that the catalog references exist.
pub(crate) async fn check_files(client: &Client, storage: &Path, clock: &SystemClock) {
    let rows = client.query("SELECT object FROM sys.shard", &[]).await.expect("the server answers");
    let named: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let end = clock.monotonic() + CLEANING_TIME_MAX;
    loop {
        let mut found = BTreeSet::new();
        find_files(storage, &storage.join("tables"), &mut found);
        if found == named {
            return;
        }
        let missing: Vec<&String> = named.difference(&found).collect();
        assert!(missing.is_empty(), "the catalog names files that do not exist: {missing:?}");
        let orphans: Vec<&String> = found.difference(&named).collect();
        assert!(clock.monotonic() < end, "the cleaner left files that nothing names: {orphans:?}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}

/// Collects the files below `folder`, by their path below `storage`.
fn find_files(storage: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    // The cleaner may delete the folder meanwhile, or it may not exist yet.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_files(storage, &path, found);
        } else {
            let name = path.strip_prefix(storage).expect("it lies below").to_str().expect("names are ASCII");
            found.insert(name.to_owned());
        }
    }
}

fn below(random: &SeededRandom, end: u64) -> u64 {
    random.next_u64() % end
}
