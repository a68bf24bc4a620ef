//! Each processing step of a statement runs once per attempt, in the order of [`binder::Step`], with every protocol
//! and wherever the statement runs.
//!
//! `steps.txt` lists the steps of some statements, as logged; a nested step is prefixed with its parent's name.

use std::fmt::Write as _;
use std::time::Duration;

use futures::SinkExt;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::cluster::wait_until;
use crate::server::Server;

const SETUP: &str = "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(10, 2), name text);
     INSERT INTO items SELECT n, n % 7, n, 'item ' || n FROM generate_series(1, 5000) n;
     CREATE TABLE kinds (kind int PRIMARY KEY, title text); INSERT INTO kinds SELECT n, 'kind ' || n FROM generate_series(0, 6) n";
const CLUSTER: &str = "CREATE CLUSTER two WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";

/// Statements by name.
const STATEMENTS: [(&str, &str); 11] = [
    ("SELECT by programs", "SELECT kind, sum(price) FROM items GROUP BY kind"),
    ("SELECT by programs and operators", "SELECT kind, string_agg(name, ',' ORDER BY id) FROM items GROUP BY kind"),
    ("SELECT of a join", "SELECT title, count(*) FROM items JOIN kinds USING (kind) GROUP BY title ORDER BY title"),
    ("SELECT with a subquery", "SELECT count(*) FROM items WHERE price > (SELECT avg(price) FROM items)"),
    ("SELECT with a subquery in LIMIT", "SELECT id FROM items ORDER BY id LIMIT (SELECT count(*) FROM kinds)"),
    ("SELECT by primary key", "SELECT name FROM items WHERE id = 7"),
    ("SELECT of constants", "SELECT 1"),
    ("UPDATE", "UPDATE items SET price = price + 1 WHERE kind = 3"),
    ("UPDATE by primary key", "UPDATE items SET price = price + 1 WHERE id = 7"),
    ("INSERT", "INSERT INTO kinds SELECT max(kind) + 1, 'more' FROM kinds"),
    ("COPY TO", "COPY items TO STDOUT"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_step_is_taken_once_and_in_order() {
    let server = Server::start_with(&["--threads", "2", "--log", "info,step=debug"], &[]);
    let client = server.connect().await;
    client.batch_execute(SETUP).await.expect("the tables are new");
    client.batch_execute(CLUSTER).await.expect("it is new");
    wait_until(&client, "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'two' AND state = 'ready'").await;
    let mut found = String::new();
    for (place, settings) in [
        ("in one process", "SET kiln.engine = on"),
        ("on workers", "USE CLUSTER two; SET min_parallel_table_scan_size = 0"),
    ] {
        // Workers read flushed rows only.
        client.batch_execute("VACUUM").await.expect("rows settle");
        client.batch_execute(settings).await.expect("there are such settings");
        tell_steps(&server, &client, place, &mut found).await;
    }
    let known = include_str!("steps.txt");
    assert!(found == known, "steps.txt would be:\n{found}");
}

async fn tell_steps(server: &Server, client: &Client, place: &str, found: &mut String) {
    let mut log = Log::at_end_of(server).await;
    for (name, sql) in STATEMENTS {
        let mut told =
            |way: &str, steps: String| writeln!(found, "{name}, {way}, {place}:\n    {steps}").expect("memory");
        if sql.starts_with("COPY") {
            drop(client.copy_out(sql).await.expect("rows come"));
            told("extended", log.steps().await);
            continue;
        }
        client.batch_execute(sql).await.expect("it runs");
        told("simple", log.steps().await);
        let statement = client.prepare(sql).await.expect("it is planned");
        told("prepared", log.steps().await);
        for way in ["executed", "executed again"] {
            client.query(&statement, &[]).await.expect("it runs");
            told(way, log.steps().await);
        }
        if sql.starts_with("SELECT") {
            client.batch_execute("BEGIN").await.expect("a transaction begins");
            log.steps().await;
            client.batch_execute(&format!("DECLARE c CURSOR FOR {sql}")).await.expect("it is planned");
            told("by a cursor", log.steps().await);
            client.batch_execute("FETCH ALL FROM c").await.expect("it runs");
            told("fetched", log.steps().await);
            client.batch_execute("COMMIT").await.expect("it ends");
            log.steps().await;
        }
    }
    client.batch_execute("CREATE TABLE of_steps (a int)").await.expect("it is new");
    writeln!(found, "CREATE TABLE, simple, {place}:\n    {}", log.steps().await).expect("memory");
    let mut rows = Box::pin(client.copy_in("COPY of_steps FROM STDIN").await.expect("rows are asked for"));
    rows.send(bytes::Bytes::from_static(b"1\n2\n")).await.expect("they are taken");
    assert_eq!(rows.as_mut().finish().await.expect("they are stored"), 2);
    writeln!(found, "COPY FROM, extended, {place}:\n    {}", log.steps().await).expect("memory");
    client.batch_execute("DROP TABLE of_steps").await.expect("it is there");
    log.steps().await;
}

/// Reader of the steps in a server's log.
struct Log<'a> {
    server: &'a Server,
    /// Length of the part already read.
    read: usize,
}

impl<'a> Log<'a> {
    async fn at_end_of(server: &'a Server) -> Self {
        let mut log = Self { server, read: 0 };
        log.steps().await;
        log
    }

    /// Returns the steps begun since the last call, once no more appear.
    async fn steps(&mut self) -> String {
        let clock = SystemClock::new();
        let (mut before, mut quiet) = (0, 0);
        loop {
            clock.sleep(Duration::from_millis(50)).await;
            let log = self.server.log();
            quiet = if log.len() == before { quiet + 1 } else { 0 };
            before = log.len();
            // Everything is logged before the client is answered, but the thread that reads the log may lag.
            if quiet == 3 {
                let new = &log[self.read..];
                self.read = before;
                return new.lines().filter_map(parse_begun_step).collect::<Vec<_>>().join(" ");
            }
        }
    }
}

/// Returns the step that a log line reports as begun in the server, below its parents.
fn parse_begun_step(line: &str) -> Option<String> {
    let spans = line.strip_suffix(": step: new")?.split_once("DEBUG ")?.1;
    // A span's fields may contain the characters that separate spans.
    let mut names = String::new();
    let mut depth = 0;
    for c in spans.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 && c != '}' {
            names.push(c);
        }
    }
    let names: Vec<&str> = names.split(':').filter(|name| !matches!(*name, "connection" | "statement")).collect();
    (!names.contains(&"worker")).then(|| names.join("/"))
}
