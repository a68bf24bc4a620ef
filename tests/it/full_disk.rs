//! A disk that fills up: writers fail with 53100, readers continue, and nothing acknowledged is lost.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::Server;

const DISK_BYTES: u64 = 128 << 20;
/// Bytes of a file that occupies the disk until space is freed.
const OTHERS_BYTES: usize = 40 << 20;
const ARGUMENTS: &[&str] = &["--disk-reserve-mb", "16", "--memory-mb", "128"];
/// More inserts than fit on the disk.
const INSERTS_MAX: u64 = 1_000;
const ROWS_PER_INSERT: u64 = 1_000;

/// Small tmpfs of its own, which only root may mount.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = TempDir::with_prefix("kiln-disk-").expect("a temporary folder can be made");
        let size = format!("size={DISK_BYTES}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy unmount: a killed server may still have files open.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writers_and_loses_nothing() {
    let Some(disk) = SmallDisk::mount() else {
        println!("skipped: no disk can be mounted here");
        return;
    };
    let others = disk.path().join("others");
    std::fs::write(&others, vec![1; OTHERS_BYTES]).expect("the disk is empty");
    let data = disk.path().join("data");
    let server = Server::start_on(&data, ARGUMENTS);
    let client = server.connect().await;
    client
        .batch_execute("CREATE TABLE small (n int, v text) WITH (storage = row); CREATE TABLE big (n int, v text)")
        .await
        .expect("there is room");
    let mut acknowledged = 0;
    fill(&client, &mut acknowledged).await;
    assert_eq!(rows(&client, "small").await, acknowledged);

    // Direct loads into shards, and spill files of queries.
    let load = "INSERT INTO big SELECT i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, 3000000) AS g(i)";
    let refused = client.batch_execute(load).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
    client.batch_execute("SET kiln.target_partitions = 1").await.expect("it is a setting");
    let text = (0..12).map(|n| format!("md5((i + {n})::text)")).collect::<Vec<_>>().join(" || ");
    let series = format!("SELECT {text} AS r FROM generate_series(1, 600000) AS g(i)");
    let sort = format!("SELECT sum(length(r)) FROM ({series} ORDER BY r OFFSET 1) AS s");
    let refused = client.batch_execute(&sort).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
    let group = format!("SELECT count(*) FROM ({series} GROUP BY 1) AS s");
    let refused = client.batch_execute(&group).await.expect_err("there is no room");
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
    assert_eq!((rows(&client, "small").await, rows(&client, "big").await), (acknowledged, 0));

    // Statements that free space are allowed.
    client.batch_execute("DELETE FROM small WHERE n < 1000").await.expect("a deletion needs little");
    let deleted = 1_000;
    assert_eq!(rows(&client, "small").await, acknowledged - deleted);

    // A start needs little, too.
    drop(client);
    server.kill();
    let server = Server::start_on(&data, ARGUMENTS);
    let client = server.connect().await;
    assert_eq!((rows(&client, "small").await, rows(&client, "big").await), (acknowledged - deleted, 0));
    fill(&client, &mut acknowledged).await;

    std::fs::remove_file(&others).expect("it is there");
    let clock = SystemClock::new();
    while let Err(refused) = insert(&client, acknowledged).await {
        assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
        assert!(clock.monotonic() < Duration::from_secs(120), "there is room again");
        clock.sleep(Duration::from_millis(100)).await;
    }
    acknowledged += ROWS_PER_INSERT;
    drop(client);
    server.kill();

    let server = Server::start_on(&data, ARGUMENTS);
    let client = server.connect().await;
    assert_eq!((rows(&client, "small").await, rows(&client, "big").await), (acknowledged - deleted, 0));
    insert(&client, acknowledged).await.expect("there is room");
    assert_eq!(objects(&data.join("storage/tables")), 0, "what the load had written is gone");
}

/// Inserts rows until the disk is full.
async fn fill(client: &Client, acknowledged: &mut u64) {
    let refused = loop {
        match insert(client, *acknowledged).await {
            Ok(()) => *acknowledged += ROWS_PER_INSERT,
            Err(error) => break error,
        }
        assert!(*acknowledged < INSERTS_MAX * ROWS_PER_INSERT, "the disk is never full");
    };
    assert_eq!(refused.code(), Some(&SqlState::DISK_FULL), "{refused:?}");
}

async fn insert(client: &Client, from: u64) -> Result<(), tokio_postgres::Error> {
    let to = from + ROWS_PER_INSERT - 1;
    client
        .batch_execute(&format!(
            "INSERT INTO small SELECT i, repeat(md5(i::text), 20) FROM generate_series({from}, {to}) AS g(i)"
        ))
        .await
}

async fn rows(client: &Client, table: &str) -> u64 {
    let counted = client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.expect("readers go on");
    counted.get::<_, i64>(0).unsigned_abs()
}

/// Returns the number of files below the folder.
pub(crate) fn objects(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .map(|entry| {
            let path = entry.expect("it is there").path();
            if path.is_dir() { objects(&path) } else { 1 }
        })
        .sum()
}
