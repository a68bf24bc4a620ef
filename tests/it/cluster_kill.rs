//! Worker processes killed while queries run on them, and a server killed while its workers read for a load.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bench::result_comparison::{self, Row};
use bench::{Suite, query_benchmark, table_load};
use tempfile::TempDir;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::cluster::wait_until;
use crate::processes::children;
use crate::server::{Server, nightly};

pub(crate) const SCALE: f64 = 0.05;
/// Workers killed in an ordinary run and in a nightly one.
const KILLS: usize = 15;
const KILLS_NIGHTLY: usize = 200;
/// Milliseconds between two kills: a statement is retried once, so those that one kill hit must have ended before the
/// next.
const PAUSE_MIN: u64 = 500;
const PAUSE_MAX: u64 = 1_500;
/// Longest wait for any event.
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of sessions that run queries meanwhile.
const CLIENTS: usize = 3;
const CLUSTER: &str = "CREATE CLUSTER hit WITH (NODE_COUNT = 3, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
pub(crate) const THREE_READY: &str = "SELECT count(*) = 3 FROM sys.worker WHERE cluster = 'hit' AND state = 'ready'";
pub(crate) const ON_WORKERS: &str = "USE CLUSTER hit; SET min_parallel_table_scan_size = 0";
/// SQLSTATEs allowed for a statement that lost two workers, or one worker after its first rows.
pub(crate) const LOST_WORKER_STATES: [&str; 2] = ["58030", "57P01"];

/// Counts of the outcomes of a session's statements.
#[derive(Debug, Default)]
struct OutcomeCounts {
    right: usize,
    lost: usize,
    /// Wrong answers and unexpected errors.
    wrong: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_outlive_the_workers_that_run_them() {
    let server = Server::start_with(&["--worker-backoff", "0"], &[]);
    let boss = load_with_cluster(&server).await;
    let mut known = BTreeMap::new();
    for (at, sql) in Suite::Tpch.queries().iter().enumerate().filter(|(_, sql)| !sql.contains("CREATE")) {
        known.insert(at + 1, (*sql, query_benchmark::run_query(&boss, sql).await.expect("each query has an answer")));
    }
    let known = Arc::new(known);
    let is_over = Arc::new(AtomicBool::new(false));
    let (mut sessions, mut counts) = (Vec::new(), Vec::new());
    for number in 0..CLIENTS {
        let client = server.connect().await;
        client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
        let ended = Arc::new(AtomicU64::new(0));
        counts.push(Arc::clone(&ended));
        sessions.push(tokio::spawn(run_queries(client, Arc::clone(&known), number * 7, Arc::clone(&is_over), ended)));
    }
    let random = SeededRandom::new(0x_5EED);
    let clock = SystemClock::new();
    let kills = if nightly() { KILLS_NIGHTLY } else { KILLS };
    let ended = || counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    for _ in 0..kills {
        let pause = PAUSE_MIN + random.next_u64() % (PAUSE_MAX - PAUSE_MIN);
        clock.sleep(Duration::from_millis(pause)).await;
        let workers = children(server.pid());
        assert_eq!(workers.len(), 3, "each worker is a process");
        let killed = workers[(random.next_u64() % 3) as usize];
        let before = ended();
        kill(killed);
        wait_until_replaced(server.pid(), killed, &clock).await;
        wait_until(&boss, THREE_READY).await;
        let begun = clock.monotonic();
        while ended().iter().zip(&before).any(|(now, before)| now == before) {
            assert!(clock.monotonic() - begun < PATIENCE, "every session goes on");
            clock.sleep(Duration::from_millis(20)).await;
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let mut all = OutcomeCounts::default();
    for session in sessions {
        let endings = session.await.expect("a session does not panic");
        all.right += endings.right;
        all.lost += endings.lost;
        all.wrong.extend(endings.wrong);
    }
    println!("{} statements were answered, {} told of lost workers", all.right, all.lost);
    assert!(all.wrong.is_empty(), "{:#?}", all.wrong);
    // Each kill hits a statement of each session; one that has sent rows cannot be retried.
    assert!(all.lost * 5 <= kills * CLIENTS, "four of five statements outlive a worker of theirs: {all:?}");
    assert!(0 < all.right, "some statements ran");
}

/// Runs queries one after the other, starting with number `first`.
async fn run_queries(
    client: Client,
    known: Arc<BTreeMap<usize, (&'static str, Vec<Row>)>>,
    first: usize,
    is_over: Arc<AtomicBool>,
    ended: Arc<AtomicU64>,
) -> OutcomeCounts {
    let mut endings = OutcomeCounts::default();
    for (number, (sql, expected)) in known.iter().cycle().skip(first) {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        match query_benchmark::run_query(&client, sql).await {
            Ok(found) => match result_comparison::compare(expected, &found) {
                Ok(()) => endings.right += 1,
                Err(difference) => endings.wrong.push(format!("q{number:02}: {difference}")),
            },
            Err(error) => match error.as_db_error() {
                Some(told) if LOST_WORKER_STATES.contains(&told.code().code()) && told.hint().is_some() => {
                    endings.lost += 1
                }
                _ => endings.wrong.push(format!("q{number:02}: {error:?}")),
            },
        }
        ended.fetch_add(1, Ordering::Relaxed);
    }
    endings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_workers_read_for_is_there_whole_or_not_at_all() {
    let folder = TempDir::with_prefix("kiln-test-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &[]);
    let boss = load_with_cluster(&server).await;
    boss.batch_execute("CREATE TABLE copied AS SELECT * FROM lineitem WHERE false").await.expect("it is new");
    let rows: i64 = boss.query_one("SELECT count(*) FROM lineitem", &[]).await.expect("it is loaded").get(0);
    let (clock, mut expected) = (SystemClock::new(), 0);
    let mut doubtful = 0;
    for moment in [20, 90, 200, 350, 600, 900] {
        let client = server.connect().await;
        client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
        let copying =
            tokio::spawn(async move { client.batch_execute("INSERT INTO copied SELECT * FROM lineitem").await });
        clock.sleep(Duration::from_millis(moment)).await;
        server.kill();
        let is_acknowledged = copying.await.expect("a session does not panic").is_ok();
        server = Server::start_on(folder.path(), &[]);
        let boss = server.connect().await;
        let found: i64 = boss.query_one("SELECT count(*) FROM copied", &[]).await.expect("it is there").get(0);
        assert!(
            found == expected + rows || (found == expected && !is_acknowledged),
            "{found} of {expected} and {rows}"
        );
        doubtful += usize::from(found == expected);
        expected = found;
        wait_until(&boss, THREE_READY).await;
    }
    println!("{doubtful} of 6 loads were not there");
    let client = server.connect().await;
    client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
    let again: i64 = client.query_one("SELECT count(*) FROM copied", &[]).await.expect("workers read it").get(0);
    assert_eq!(again, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_a_block_is_made_once_though_a_worker_of_it_is_lost() {
    let server = Server::start_with(&["--worker-backoff", "0"], &[]);
    let boss = load_with_cluster(&server).await;
    boss.batch_execute(
        "CREATE TABLE round (number int);
         CREATE TABLE copied AS SELECT * FROM lineitem WHERE false;
         CREATE TABLE totals (orderkey bigint, lines bigint);
         INSERT INTO totals SELECT o_orderkey, 0 FROM orders; VACUUM totals",
    )
    .await
    .expect("they are new");
    let count = async |sql: &str| boss.query_one(sql, &[]).await.expect("it is counted").get::<_, i64>(0);
    let (lines, orders) = (count("SELECT count(*) FROM lineitem").await, count("SELECT count(*) FROM orders").await);
    let changes = [
        ("INSERT INTO copied SELECT l.* FROM lineitem l JOIN orders ON o_orderkey = l_orderkey", lines),
        (
            "UPDATE totals SET lines = lines + n FROM (SELECT l_orderkey, count(*) AS n FROM lineitem GROUP BY 1) AS of_order WHERE l_orderkey = orderkey",
            orders,
        ),
    ];
    let client = server.connect().await;
    client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
    let clock = SystemClock::new();
    let mut made = [0; 2];
    for (round, moment) in [5, 15, 40, 80, 150, 300].into_iter().enumerate() {
        for (which, (change, rows)) in changes.iter().enumerate() {
            client.batch_execute(&format!("BEGIN; INSERT INTO round VALUES ({round})")).await.expect("it begins");
            let killed = children(server.pid())[round % 3];
            let changing = client.execute(*change, &[]);
            let (changed, ()) = tokio::join!(changing, async {
                clock.sleep(Duration::from_millis(moment)).await;
                kill(killed);
            });
            match changed {
                Ok(changed) => {
                    assert_eq!(i64::try_from(changed), Ok(*rows), "{change}");
                    client.batch_execute("COMMIT").await.expect("nothing stands in the way");
                    made[which] += 1;
                }
                Err(error) => {
                    let code = error.code().map(|code| code.code().to_owned());
                    assert!(
                        code.is_some_and(|code| LOST_WORKER_STATES.contains(&code.as_str())),
                        "{change}: {error:?}"
                    );
                    client.batch_execute("ROLLBACK").await.expect("it ends");
                }
            }
            wait_until_replaced(server.pid(), killed, &clock).await;
            wait_until(&boss, THREE_READY).await;
        }
    }
    println!("{made:?} of 6 changes each were made");
    assert_eq!(count("SELECT count(*) FROM copied").await, made[0] * lines);
    assert_eq!(count("SELECT sum(lines)::bigint FROM totals").await, made[1] * lines);
    assert_eq!(count("SELECT count(*) FROM round").await, made[0] + made[1], "what came before them in their blocks");
    assert!(8 <= made[0] + made[1], "most are begun again: {made:?}");
}

/// Loads TPC-H and creates a cluster of three worker processes.
pub(crate) async fn load_with_cluster(server: &Server) -> Client {
    let client = server.connect().await;
    table_load::load(&client, Suite::Tpch, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
    client.batch_execute(CLUSTER).await.expect("a cluster can be made");
    wait_until(&client, THREE_READY).await;
    client
}

/// Waits until another process has replaced the killed one.
async fn wait_until_replaced(server: u32, killed: u32, clock: &SystemClock) {
    let begun = clock.monotonic();
    loop {
        let workers = children(server);
        if workers.len() == 3 && !workers.contains(&killed) {
            return;
        }
        assert!(clock.monotonic() - begun < PATIENCE, "{workers:?} are there instead of three without {killed}");
        clock.sleep(Duration::from_millis(20)).await;
    }
}

/// Kills a process that a server of this test has started.
fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()), "a worker is there to be killed");
}
