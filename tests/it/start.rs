//! Starts on data folders that are older than their storage, damaged, or of a diverged history: each is refused with
//! advice, and the storage can be restored.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use types::{Clock, Failpoint, SystemClock};

use crate::server::{Server, kiln};

const REFUSED: &str = "refusing to serve";

struct WarehouseFolders {
    folder: TempDir,
    storage: String,
}

impl WarehouseFolders {
    fn new() -> Self {
        let folder = TempDir::with_prefix("kiln-start-").expect("a temporary folder can be made");
        let storage = format!("file://{}", folder.path().join("storage").display());
        Self { folder, storage }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, name: &str) -> Server {
        Server::start_on(&self.path(name), &["--storage", &self.storage])
    }

    fn try_start(&self, name: &str, more: &[&str]) -> Result<Server, String> {
        Server::try_start_on(&self.path(name), &[&["--storage", &self.storage], more].concat())
    }

    /// Asserts that the start is refused; returns the log.
    fn assert_refused(&self, name: &str) -> String {
        let log = self.try_start(name, &[]).err().unwrap_or_else(|| panic!("a server starts on {name}"));
        assert!(log.contains(REFUSED) && log.contains("kiln restore") && log.contains("--new-timeline"), "{log}");
        log
    }

    fn restore(&self, name: &str) -> Output {
        let mut command = Command::new(kiln());
        command.args(["restore", "--storage", &self.storage, "--data"]).arg(self.path(name));
        command.output().expect("kiln runs")
    }

    /// Restores a warehouse from the storage and returns its rows.
    async fn restored(&self, name: &str) -> Vec<i64> {
        let restored = self.restore(name);
        assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
        rows(&self.start(name).connect().await).await
    }

    fn copy(&self, from: &str, to: &str) {
        copy(&self.path(from), &self.path(to));
    }
}

async fn rows(client: &Client) -> Vec<i64> {
    let rows = client.query("SELECT n FROM t ORDER BY n", &[]).await.expect("the table is there");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn wait_until_copied(server: &Server) {
    let (client, clock) = (server.connect().await, SystemClock::new());
    let copied = "SELECT copied_record = newest_record FROM sys.history";
    while !client.query_one(copied, &[]).await.expect("it answers").get::<_, bool>(0) {
        clock.sleep(Duration::from_millis(50)).await;
    }
}

async fn insert(server: &Server, numbers: std::ops::RangeInclusive<i64>) {
    let client = server.connect().await;
    for number in numbers {
        client.batch_execute(&format!("INSERT INTO t VALUES ({number})")).await.expect("the table is there");
    }
}

/// Prepares a stopped warehouse with the numbers 1 to 5 in the folder `a`.
async fn prepare() -> WarehouseFolders {
    let house = WarehouseFolders::new();
    let server = house.start("a");
    server.connect().await.batch_execute("CREATE TABLE t (n bigint)").await.expect("the table is new");
    insert(&server, 1..=5).await;
    assert!(server.stop());
    house
}

#[test]
fn a_start_whose_address_is_in_use_leaves_the_storage_as_it_is() {
    let house = WarehouseFolders::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound").to_string();
    for option in ["--listen", "--http"] {
        let free = if option == "--listen" { "--http" } else { "--listen" };
        let mut command = Command::new(kiln());
        command.args(["serve", option, &address, free, "127.0.0.1:0", "--storage", &house.storage, "--data"]);
        let ended = command.arg(house.path("a")).output().expect("kiln runs");
        let log = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && log.contains(&format!("cannot listen on {address}")), "{log}");
        assert!(!house.path("storage").exists(), "{log}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_without_its_catalog_is_refused() {
    let house = prepare().await;
    fs::remove_file(house.path("a").join("catalog.redb")).expect("it is there");
    let log = house.assert_refused("a");
    assert!(log.contains("ends with record 0"), "{log}");
    // Twice, since the first try has created a new file.
    house.assert_refused("a");
    assert_eq!(house.restored("b").await, [1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_write_ahead_log_has_lost_its_end_is_refused() {
    let house = prepare().await;
    let file = house.path("a").join("catalog.redb.wal0");
    let mut bytes = fs::read(&file).expect("it is there");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("it is not empty");
    bytes[end - 100..].fill(0);
    fs::write(&file, bytes).expect("it can be written");
    house.assert_refused("a");
    assert_eq!(house.restored("b").await, [1, 2, 3, 4, 5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_copy_of_the_folder_is_refused_and_begins_a_timeline_where_it_is_to() {
    let house = prepare().await;
    house.copy("a", "older");
    let server = house.start("a");
    insert(&server, 6..=8).await;
    assert!(server.stop());
    // The newest copy is accepted.
    house.copy("a", "newest");
    let server = house.start("newest");
    assert_eq!(rows(&server.connect().await).await, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(server.stop());
    house.assert_refused("older");
    assert_eq!(house.restored("b").await, [1, 2, 3, 4, 5, 6, 7, 8]);
    // It has begun a timeline, so the others are abandoned.
    let log = house.assert_refused("newest");
    assert!(log.contains("abandoned timeline"), "{log}");

    let server = house.try_start("older", &["--new-timeline"]).expect("it is allowed to");
    assert_eq!(rows(&server.connect().await).await, [1, 2, 3, 4, 5]);
    assert_eq!(house.restored("c").await, [1, 2, 3, 4, 5], "its beginning is in the storage before it serves");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_timeline_goes_on() {
    let house = prepare().await;
    house.copy("a", "older");
    let server = house.start("a");
    insert(&server, 6..=8).await;
    assert!(server.stop());
    let server = house.try_start("older", &["--new-timeline"]).expect("it is allowed to");
    insert(&server, 11..=12).await;
    assert!(server.stop());
    house.assert_refused("a");
    // No timeline is begun where folder and storage match.
    for more in [&[][..], &["--new-timeline"]] {
        let server = house.try_start("older", more).expect("it goes on");
        assert_eq!(rows(&server.connect().await).await, [1, 2, 3, 4, 5, 11, 12]);
        assert!(server.stop());
    }
    assert!(!house.path("storage/log/00000003").exists());
    assert_eq!(house.restored("b").await, [1, 2, 3, 4, 5, 11, 12]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_timeline_whose_beginning_ends_at_a_failpoint_begins_at_the_next_start() {
    let points = [
        Failpoint::Claimed,
        Failpoint::TimelineBegun,
        Failpoint::CheckpointMade,
        Failpoint::CheckpointStored,
        Failpoint::CheckpointNamed,
    ];
    let prepared = prepare().await;
    prepared.copy("a", "older");
    let server = prepared.start("a");
    insert(&server, 6..=8).await;
    assert!(server.stop());
    for point in points {
        let house = WarehouseFolders::new();
        copy(&prepared.path("older"), &house.path("older"));
        copy(&prepared.path("storage"), &house.path("storage"));
        let set = format!("{}:1", point.name());
        let arguments = ["--storage", &house.storage, "--new-timeline"];
        let variables = [("KILN_FAILPOINT", set.as_str())];
        let log = Server::try_start_on_with(&house.path("older"), &arguments, &variables).err();
        let log = log.unwrap_or_else(|| panic!("{set} is not met before the server serves"));
        assert!(log.contains("failpoint reached"), "{set}: {log}");
        // The option is needed only once.
        let server = house.start("older");
        insert(&server, 11..=11).await;
        server.kill();
        let server = house.start("older");
        wait_until_copied(&server).await;
        assert!(server.stop());
        assert_eq!(house.restored("b").await, [1, 2, 3, 4, 5, 11], "{set}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_folder_of_a_running_server_is_whole_or_refused() {
    let house = prepare().await;
    let server = Server::start_on(&house.path("a"), &["--storage", &house.storage, "--max-wal-kb", "64"]);
    let client = server.connect().await;
    let writer = tokio::spawn(async move {
        for number in 6.. {
            if client.batch_execute(&format!("INSERT INTO t VALUES ({number})")).await.is_err() {
                return number;
            }
        }
        0
    });
    for number in 0..6 {
        SystemClock::new().sleep(Duration::from_millis(150)).await;
        house.copy("a", &format!("copy{number}"));
    }
    insert(&server, 0..=0).await;
    server.kill();
    assert!(6 < writer.await.expect("it does not panic"), "it has written meanwhile");
    let server = house.start("a");
    let all = rows(&server.connect().await).await;
    wait_until_copied(&server).await;
    assert!(server.stop());
    // Every copy lacks the end of the log: a copy that looks like a crash is detected by the storage.
    for number in 0..6 {
        let log = house.try_start(&format!("copy{number}"), &[]).err();
        let log = log.unwrap_or_else(|| panic!("a server starts on copy {number}"));
        let is_told =
            ["refusing to serve", "cannot open the catalog", "cannot compare"].iter().any(|told| log.contains(told));
        assert!(is_told && !log.contains("panicked at crates"), "copy {number}: {log}");
    }
    let server = house.start("a");
    assert_eq!(rows(&server.connect().await).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_servers_on_one_storage_one_goes_on_and_the_history_stays_one() {
    let house = prepare().await;
    house.copy("a", "b");
    let mut first = house.start("a");
    // As new as the storage: it takes over the storage, and the other server stops before it writes there.
    let second = house.start("b");
    let client = first.connect().await;
    let mut ended = None;
    for _ in 0..100 {
        // Writes that it still accepts are lost.
        let _ = client.batch_execute("INSERT INTO t VALUES (-1)").await;
        ended = first.exit_status().await;
        if ended.is_some() {
            break;
        }
    }
    assert!(ended.is_some(), "the first server stops: {}", first.log());
    insert(&second, 6..=7).await;
    assert!(second.stop());
    // It has commits that no one else has.
    let log = house.assert_refused("a");
    assert!(log.contains("histories have diverged") || log.contains("ends with record"), "{log}");
    assert_eq!(house.restored("c").await, [1, 2, 3, 4, 5, 6, 7]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_not_served_with_a_storage_that_is_not_its_own_or_does_not_answer() {
    let house = prepare().await;
    let server = house.start("a");
    wait_until_copied(&server).await;
    // Now the folder has no part of the log that is in the storage.
    insert(&server, 6..=6).await;
    assert!(server.stop());
    fs::rename(house.path("storage"), house.path("elsewhere")).expect("it is there");
    let log = house.assert_refused("a");
    assert!(log.contains("were copied to the storage"), "{log}");
    fs::remove_dir_all(house.path("storage")).ok();
    fs::write(house.path("storage"), "a file").expect("nothing is in the way");
    for more in [&[][..], &["--new-timeline"]] {
        let log = house.try_start("a", more).err().expect("it does not start");
        assert!(log.contains("storage"), "{log}");
    }
    fs::remove_file(house.path("storage")).expect("it is there");
    fs::rename(house.path("elsewhere"), house.path("storage")).expect("it is there");
    assert_eq!(rows(&house.start("a").connect().await).await, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_two_histories_is_not_restored() {
    let house = prepare().await;
    copy(&house.path("storage"), &house.path("storage2"));
    house.copy("a", "b");
    let server = house.start("a");
    insert(&server, 6..=8).await;
    assert!(server.stop());
    let other = format!("file://{}", house.path("storage2").display());
    let server = Server::start_on(&house.path("b"), &["--storage", &other]);
    insert(&server, 21..=24).await;
    assert!(server.stop());
    // As if both servers had written to the same storage.
    for entry in fs::read_dir(house.path("storage2/log/00000001")).expect("it is there") {
        let entry = entry.expect("it reads");
        let target = house.path("storage/log/00000001").join(entry.file_name());
        if !target.exists() {
            fs::copy(entry.path(), target).expect("it can be copied");
        }
    }
    let refused = house.restore("c");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.contains("mixes two histories"), "{told}");
    house.assert_refused("a");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("the folder reads");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if let Err(error) = fs::copy(entry.path(), target) {
            // A running server may delete files meanwhile.
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}: {error}", entry.path().display());
        }
    }
}
