//! Warehouses written by older versions (`tests/old_warehouse`): this version opens them, returns the same answers,
//! writes to them and restores them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokio_postgres::{Client, SimpleQueryMessage};
use types::Failpoint;

use crate::server::{Server, kiln};

/// Versions with a packed warehouse.
const VERSIONS: [&str; 1] = ["a105d92"];
/// Retention long enough that nothing from the packed warehouse has expired.
const RETENTION_ARGUMENTS: [&str; 4] = ["--retention", "4000000000", "--token-retention", "4000000000"];

/// Unpacked warehouse: the folders `data` and `storage`.
struct OldWarehouse {
    folder: TempDir,
    version: &'static str,
}

impl OldWarehouse {
    fn unpack(version: &'static str) -> Self {
        let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("old_warehouse/{version}.tar.gz"));
        let folder = TempDir::with_prefix("kiln-old-").expect("a temporary folder can be made");
        let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()).status();
        assert!(unpacked.is_ok_and(|status| status.success()), "{} unpacks", archive.display());
        Self { folder, version }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = RETENTION_ARGUMENTS.map(str::to_owned).to_vec();
        arguments.extend(["--storage".to_owned(), format!("file://{}", self.path("storage").display())]);
        arguments
    }

    fn try_start(&self, data: &str, variables: &[(&str, &str)]) -> Result<Server, String> {
        let arguments = self.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Server::try_start_on_with(&self.path(data), &arguments, variables)
    }

    fn start(&self, data: &str) -> Server {
        self.try_start(data, &[]).unwrap_or_else(|log| panic!("{}: {log}", self.version))
    }

    fn restore(&self, data: &str, more: &[&str]) {
        let mut command = Command::new(kiln());
        command.arg("restore").args(&self.arguments()[4..]).arg("--data").arg(self.path(data)).args(more);
        let restored = command.output().expect("kiln runs");
        assert!(restored.status.success(), "{}: {}", self.version, String::from_utf8_lossy(&restored.stderr));
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it was packed")
    }

    /// Checks that all queries have the packed answers.
    async fn check(&self, client: &Client, answers: &str, moment: &str) {
        let mut found = String::new();
        for question in questions() {
            found.push_str(&format!("-- {question}\n"));
            found.push_str(&ask(client, question).await);
        }
        let expected = self.text(answers);
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{} {moment}", self.version);
        }
        assert_eq!(found, expected, "{} {moment}", self.version);
    }

    fn snapshot(&self) -> String {
        self.text("snapshot").trim().to_owned()
    }
}

fn questions() -> impl Iterator<Item = &'static str> {
    include_str!("../old_warehouse/questions.sql").lines()
}

/// Returns the rows as unaligned psql output.
async fn ask(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let mut text = String::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let values: Vec<&str> = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL")).collect();
            text.push_str(&values.join("|"));
            text.push('\n');
        }
    }
    text
}

async fn run(client: &Client, sql: &str) {
    for sql in sql.split(';') {
        client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    }
}

/// Checks passwords, time travel and UNDROP, and that the warehouse accepts writes.
async fn check_that_it_goes_on(house: &OldWarehouse, server: &Server) {
    let client = server.connect().await;
    let ana = server.connect_as("user=ana dbname=kiln password='open sesame'").await.expect("her password is the same");
    assert_eq!(ask(&ana, "select current_user, current_setting('search_path')").await, "ana|sales, public\n");
    assert!(server.connect_as("user=ana dbname=kiln password='sesame'").await.is_err());
    let earlier = format!("select count(*), sum(id), min(note) from sales.orders as of snapshot {}", house.snapshot());
    assert_eq!(ask(&client, &earlier).await, "3001|4506501|by token\n");
    let lost = format!("select count(*), sum(id) from lost as of snapshot {}", house.snapshot());
    assert_eq!(ask(&client, &lost).await, "500|125748\n");
    run(&client, "undrop table lost").await;
    assert_eq!(ask(&client, "select count(*), sum(id), max(name) from lost").await, "500|125748|lost and fresh\n");
    // A statement with a committed token is not run again.
    run(&client, "set kiln.statement_token = 'pays'; update accounts set balance = balance + 1 where id = 1").await;
    run(&client, "reset kiln.statement_token").await;
    assert_eq!(ask(&client, "select balance from accounts where id = 1").await, "11.00\n");
    // Sequences continue after the last number; a crash may have skipped some.
    assert_eq!(ask(&client, "select nextval('tickets') > 265, nextval('circle') between 1 and 3").await, "t|t\n");
    run(&client, "insert into items (name, account) values ('new', 1)").await;
    assert_eq!(
        ask(&client, "select count(*), count(distinct id), count(distinct number), max(id) > 80 from items").await,
        "5|5|5|t\n"
    );
    let refused = client.batch_execute("insert into accounts values (1, 'again')").await.expect_err("the key is there");
    assert_eq!(refused.code().map(tokio_postgres::error::SqlState::code), Some("23505"));
    let changes = "update sales.orders set amount = amount + 1 where id = 7; delete from moved where region = 'east';
        insert into fresh select generate_series(100, 109); vacuum sales.orders; vacuum fresh;
        alter table everything add column later_still int; create table new_one (n int); insert into new_one values (1);
        alter role ana password 'other'; create cluster newer (hardware_instance = 'embedded')";
    run(&client, changes).await;
    assert_eq!(ask(&client, WRITTEN).await, EXPECTED);
}

const WRITTEN: &str =
    "select (select amount from sales.orders where id = 7), (select count(*) from moved), (select count(*) from fresh),
    (select count(*) from new_one), (select count(*) from lost), (select count(*) from sales.orders)";
const EXPECTED: &str = "9.75|1000|31|1|500|2701\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_old_warehouse_opens_answers_and_is_written_to() {
    for version in VERSIONS {
        let house = OldWarehouse::unpack(version);
        let server = house.start("data");
        let client = server.connect().await;
        house.check(&client, "answers", "opened").await;
        drop(client);
        server.kill();
        let server = house.start("data");
        house.check(&server.connect().await, "answers", "opened again").await;
        check_that_it_goes_on(&house, &server).await;
        assert!(server.stop());
        let server = house.start("data");
        assert_eq!(ask(&server.connect().await, WRITTEN).await, EXPECTED);
        assert!(server.stop());
        // Changes by this version are restored as well.
        house.restore("restored", &[]);
        let server = house.start("restored");
        assert_eq!(ask(&server.connect().await, WRITTEN).await, EXPECTED);
    }
}

/// Clusters are stored in the data folder alone and are not restored.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_warehouse_is_restored_from_its_storage() {
    for version in VERSIONS {
        let house = OldWarehouse::unpack(version);
        house.restore("set_back", &["--to", &house.snapshot()]);
        house.restore("restored", &[]);
        for (data, answers) in [("set_back", "earlier"), ("restored", "answers")] {
            fs::copy(house.path("data/clusters"), house.path(data).join("clusters")).expect("it was packed");
            if data == "restored" {
                // The other server has begun a timeline; here the storage is as it was.
                fs::remove_dir_all(house.path("storage/log/00000002")).expect("it was begun");
                fs::remove_dir_all(house.path("storage/checkpoints/00000002")).ok();
            }
            let server = house.start(data);
            house.check(&server.connect().await, answers, data).await;
            if data == "restored" {
                check_that_it_goes_on(&house, &server).await;
            }
            assert!(server.stop());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_ends_at_any_moment_goes_on() {
    for version in VERSIONS {
        for &point in Failpoint::upgrading() {
            for time in [1, 5, 18] {
                let house = OldWarehouse::unpack(version);
                let set = format!("{}:{time}", point.name());
                let log = house.try_start("data", &[("KILN_FAILPOINT", &set)]).err();
                let log = log.unwrap_or_else(|| panic!("{set} is not met"));
                assert!(log.contains("failpoint reached"), "{set}: {log}");
                let server = house.start("data");
                house.check(&server.connect().await, "answers", &set).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_copy_of_an_old_warehouse_is_refused_too() {
    for version in VERSIONS {
        let house = OldWarehouse::unpack(version);
        let server = house.start("data");
        run(&server.connect().await, "insert into fresh values (1000)").await;
        assert!(server.stop());
        let old = OldWarehouse::unpack(version);
        fs::rename(old.path("data"), house.path("old")).expect("it was unpacked");
        let log = house.try_start("old", &[]).err().expect("it is behind its storage");
        assert!(log.contains("refusing to serve"), "{log}");
    }
}
