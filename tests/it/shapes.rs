//! Deep and long statements crash no server: each is answered or refused, and the session continues.

use std::time::Duration;

use bench::statement_shapes::{SETUP, StatementShape, shapes};
use futures::future::join_all;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::cluster::wait_until;
use crate::processes::children;
use crate::server::{Server, nightly};

/// Maximum size, and the maximum for most statements.
const SIZE_MAX: u64 = 20_000;
const SIZE_OFTEN: u64 = 2_000;
/// Duration of the statements of random sizes, in an ordinary run and in `make nightly`.
const TIME: Duration = Duration::from_secs(20);
const TIME_AT_NIGHT: Duration = Duration::from_secs(3_600);
/// In nightly runs every size up to this, of every shape, is sent by this many sessions.
const EVERY_SIZE_TO: usize = 2_000;
const SESSIONS: usize = 2;
/// Statement timeout, and the longest time in which it must take effect.
const TIMEOUT: &str = "SET statement_timeout = '30s'";
const PATIENCE: Duration = Duration::from_secs(60);
/// Shorter timeout for most sizes in nightly runs: some shapes reach any timeout from a few hundred on.
const TIMEOUT_OF_MOST: &str = "SET statement_timeout = '3s'";
/// One size in this many gets the long timeout.
const LONG_EACH: usize = 50;

/// Cluster and settings that select other threads and recursions.
const CLUSTER: &str = "CREATE CLUSTER two WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const ON_WORKERS: &str = "USE CLUSTER two; SET min_parallel_table_scan_size = 0";
const ENGINES: [&str; 3] = ["SET kiln.engine = on", "SET kiln.engine = off", "SET kiln.optimizer = off"];

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_all_shapes_and_sizes_end_no_server() {
    let mut server = Server::start_with(&["--threads", "2"], &[]);
    let mut client = session(&server, ENGINES[0]).await;
    for sql in SETUP {
        client.batch_execute(sql).await.expect("the table is new");
    }
    for shape in shapes() {
        assert!(is_answered(&client, shape, 3).await, "a {} of 3 is answered in time", shape.name);
    }
    let (clock, random) = (SystemClock::new(), SeededRandom::new(37));
    let until = clock.monotonic() + if nightly() { TIME_AT_NIGHT } else { TIME };
    let all = shapes();
    while clock.monotonic() < until {
        let shape = all[usize::try_from(random.next_u64() % all.len() as u64).expect("few shapes")];
        let most = if random.next_u64().is_multiple_of(8) { SIZE_MAX } else { SIZE_OFTEN };
        // Small sizes are more likely than large ones.
        let size = 1 + (random.next_u64() % most) * (random.next_u64() % most) / most;
        is_answered(&client, shape, usize::try_from(size).expect("it fits")).await;
        if random.next_u64().is_multiple_of(16) {
            let way = ENGINES[usize::try_from(random.next_u64() % 3).expect("it fits")];
            client = session(&server, way).await;
        }
        assert_eq!(server.exit_status().await, None, "the server ended at a {} of {size}", shape.name);
    }
    client.batch_execute("SELECT count(*) FROM t").await.expect("the session goes on");
}

/// Runs in one process and on worker processes, to which plans are sent. `KILN_SHAPES` names the shapes to send;
/// default: all.
#[tokio::test(flavor = "multi_thread")]
async fn statements_of_every_size_end_no_server_and_no_worker() {
    if !nightly() {
        println!("skipped: every size of every shape takes hours, at night, by make nightly");
        return;
    }
    for way in [ENGINES[0], ON_WORKERS] {
        send_every_size(way).await;
    }
}

async fn send_every_size(way: &str) {
    let mut server = Server::start_with(&["--threads", "2"], &[]);
    let boss = server.connect().await;
    for sql in SETUP {
        boss.batch_execute(sql).await.expect("the table is new");
    }
    // Workers read flushed rows only.
    boss.batch_execute("VACUUM").await.expect("rows settle");
    boss.batch_execute(CLUSTER).await.expect("it is new");
    wait_until(&boss, "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'two' AND state = 'ready'").await;
    let workers = children(server.pid());
    let chosen = std::env::var("KILN_SHAPES").ok();
    let is_chosen = |name: &str| chosen.as_ref().is_none_or(|chosen| chosen.split(',').any(|one| one == name));
    let clock = SystemClock::new();
    for shape in shapes().into_iter().filter(|shape| is_chosen(shape.name)) {
        let begun = clock.monotonic();
        let sending = (0..SESSIONS).map(|first| send_sizes(&server, way, shape, first + 1));
        let late: usize = join_all(sending).await.into_iter().sum();
        let took = clock.monotonic() - begun;
        println!("{way}: {} of 1 to {EVERY_SIZE_TO} in {took:?}, {late} not in time", shape.name);
        assert_eq!(server.exit_status().await, None, "the server ended at a {}", shape.name);
        assert_eq!(children(server.pid()), workers, "a worker ended at a {}", shape.name);
    }
}

/// Sends statements of one shape, of every [`SESSIONS`]-th size from `first`; returns the number that timed out.
async fn send_sizes(server: &Server, way: &str, shape: StatementShape, first: usize) -> usize {
    let client = session(server, way).await;
    let mut late = 0;
    for size in (first..=EVERY_SIZE_TO).step_by(SESSIONS) {
        let timeout = if size.is_multiple_of(LONG_EACH) { TIMEOUT } else { TIMEOUT_OF_MOST };
        client.batch_execute(timeout).await.expect("there is such a setting");
        late += usize::from(!is_answered(&client, shape, size).await);
    }
    late
}

async fn session(server: &Server, way: &str) -> Client {
    let client = server.connect().await;
    for setting in [way, TIMEOUT] {
        client.batch_execute(setting).await.expect("there is such a setting");
    }
    client
}

/// Sends a statement; returns true if it was answered or refused in time.
///
/// Panics if the connection is closed or the statement never ends.
async fn is_answered(client: &Client, shape: StatementShape, size: usize) -> bool {
    let text = (shape.build)(size);
    let ended = tokio::time::timeout(PATIENCE, client.batch_execute(&text)).await;
    let ended = ended.unwrap_or_else(|_| panic!("a {} of {size} does not heed its timeout", shape.name));
    let Err(error) = ended else { return true };
    let told = error.as_db_error().map(|told| (told.code().code().to_owned(), told.message().to_owned()));
    let (code, message) = told.unwrap_or_else(|| panic!("a {} of {size} ended the session: {error}", shape.name));
    assert_ne!(code, "XX000", "a {} of {size}: {message}", shape.name);
    code != "57014"
}
