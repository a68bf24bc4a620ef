//! Crash test: a process with a real store and a real folder is killed repeatedly while it loads, truncates and cleans.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::Change;
use objects::Objects;
use types::random::SeededRandom;
use types::{Clock, Oid, Random, SystemClock, SystemRandom};

use crate::fixtures::{begin, commit, load, object_name, put, shard_ids, table};
use crate::{CleanSettings, Transactions};

/// Environment variable that makes the test below run as the child process, with its folder.
const FOLDER: &str = "KILN_TXN_KILL_FOLDER";
const KILLS: u64 = 15;
/// Number of shards per load, which appear and disappear together.
const SHARDS: u128 = 3;

fn open(folder: &Path) -> (Arc<Transactions>, Objects) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let url = format!("file://{}", folder.join("storage").display());
    std::fs::create_dir_all(folder.join("storage")).unwrap();
    let objects = Objects::open(&url, Arc::clone(&clock), Arc::new(SystemRandom)).unwrap();
    let kv = kv::wal::open(folder.join("catalog.redb"), 16 * 1024, kv::redb::CACHE_BYTES).unwrap();
    (Transactions::open(Arc::new(kv), objects.clone(), clock).unwrap(), objects)
}

/// Commits loads for ever, and prints what was acknowledged: `load N`, or `truncate N` after all rows were removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (transactions, objects) = open(Path::new(&folder));
    let busy = CleanSettings {
        interval: Duration::from_millis(3),
        list_interval: Duration::from_millis(10),
        orphan_age: Duration::from_secs(3_600),
    };
    let cleaned = Arc::clone(&transactions);
    let _cleaner = tokio::spawn(async move { cleaned.run_cleaner(busy, &types::ServiceHealth::default()).await });
    let known = shard_ids(&transactions.current().state, 100);
    let mut next = SystemRandom.next_u64() >> 8;
    assert!(known.iter().all(|shard| shard / SHARDS != u128::from(next)), "the random number is unused");
    loop {
        let mut transaction = begin(&transactions);
        if next.is_multiple_of(8) {
            transaction.stage(vec![Change::RemoveAllRows { table: Oid(100) }]).unwrap();
        }
        let shards: Vec<u128> = (0..SHARDS).map(|part| u128::from(next) * SHARDS + part).collect();
        for &shard in &shards {
            transaction.announce_upload(&object_name(100, shard)).await.unwrap();
            objects.put(&object_name(100, shard), Bytes::from(vec![7; 10_000])).await.unwrap();
        }
        transaction.stage(vec![load(100, &shards)]).unwrap();
        if next % 8 == 5 {
            transaction.rollback();
        } else {
            transaction.commit().await.unwrap();
            let what = if next.is_multiple_of(8) { "truncate" } else { "load" };
            let mut out = std::io::stdout().lock();
            writeln!(out, "\n{what} {next}").and_then(|()| out.flush()).unwrap();
        }
        next += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_keeps_what_it_acknowledged_and_leaves_no_object() {
    let folder = tempfile::tempdir().unwrap();
    let (transactions, _) = open(folder.path());
    commit(&transactions, vec![put(table(100, "t"))]).await;
    drop(transactions);
    let random = SeededRandom::new(7);
    let mut acknowledged: BTreeSet<u128> = BTreeSet::new();
    let mut commits = 0;
    for kill in 0..KILLS {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_kill_tests::child", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let reader = std::thread::spawn(move || lines.map_while(Result::ok).collect::<Vec<String>>());
        SystemClock::new().sleep(Duration::from_millis(30 + random.next_u64() % 300)).await;
        process.kill().unwrap();
        process.wait().unwrap();
        for line in reader.join().unwrap() {
            commits += u64::from(line.starts_with("load ") || line.starts_with("truncate "));
            match line.split_once(' ').map(|(what, number)| (what, number.parse::<u128>())) {
                Some(("load", Ok(number))) => drop(acknowledged.insert(number)),
                // A truncation and its own rows are one commit.
                Some(("truncate", Ok(number))) => acknowledged = BTreeSet::from([number]),
                _ => {}
            }
        }
        check(folder.path(), &mut acknowledged, kill).await;
    }
    assert!(KILLS < commits, "too few commits before the kills: {commits} commits");
}

async fn check(folder: &Path, acknowledged: &mut BTreeSet<u128>, kill: u64) {
    let (transactions, objects) = open(folder);
    let shards: BTreeSet<u128> = shard_ids(&transactions.current().state, 100).into_iter().collect();
    let loads: BTreeSet<u128> = shards.iter().map(|shard| shard / SHARDS).collect();
    for load in &loads {
        assert!(
            (0..SHARDS).all(|part| shards.contains(&(load * SHARDS + part))),
            "kill {kill}: load {load} is there in part"
        );
    }
    let unknown: Vec<u128> = loads.difference(acknowledged).copied().collect();
    assert!(unknown.len() <= 1, "kill {kill}: only the last commit can be in doubt, not {unknown:?}");
    // An unacknowledged truncation that took effect has removed the earlier loads.
    let truncated = unknown.first().is_some_and(|load| load.is_multiple_of(8));
    assert!(truncated || acknowledged.is_subset(&loads), "kill {kill}: acknowledged loads are lost");
    *acknowledged = loads;
    transactions.clean_once().await.unwrap();
    let found: BTreeSet<String> = objects.list("tables").await.unwrap().into_iter().map(|object| object.name).collect();
    let named: BTreeSet<String> = shards.iter().map(|&shard| object_name(100, shard)).collect();
    assert!(found == named, "kill {kill}: {} objects lie there, the catalog names {}", found.len(), named.len());
}
