//! `kiln.statement_token`: after a lost connection a client queries the outcome of its statement and repeats it; it
//! takes effect exactly once, whenever the server is killed.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use futures::SinkExt;
use futures::future::join_all;
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{Client, Error, SimpleQueryMessage};
use types::Random;
use types::random::SeededRandom;

use crate::server::{Server, nightly};

/// Servers killed in an ordinary run and in a nightly one.
const KILLS: usize = 12;
const KILLS_NIGHTLY: usize = 200;
/// Maximum number of tokens committed in a server's life.
const LIFE_MAX: u64 = 60;
/// Number of concurrent clients, each with another kind of statement.
const CLIENTS: u64 = 5;
/// Rows that a COPY or a transaction block writes under one token.
const ROWS: i64 = 3;

/// Current port of the server, and whether it is the last server.
type Port = watch::Receiver<(u16, bool)>;

#[tokio::test(flavor = "multi_thread")]
async fn whenever_the_server_is_killed_each_token_happens_once() {
    let folder = TempDir::with_prefix("kiln-token-").expect("a temporary folder can be made");
    let mut server = Server::start_on(folder.path(), &["--max-wal-kb", "64"]);
    let setup = "CREATE TABLE ledger (token text, n bigint); \
                 CREATE TABLE counter (client bigint PRIMARY KEY ENFORCED, n bigint) WITH (storage = row)";
    let client = server.connect().await;
    client.batch_execute(setup).await.expect("the tables are new");
    let zero = format!("INSERT INTO counter SELECT n, 0 FROM generate_series(0, {}) AS s (n)", CLIENTS - 1);
    client.batch_execute(&zero).await.expect("the table is empty");
    let (port, seen) = watch::channel((server.pg_port, false));
    let (done, mut committed) = mpsc::unbounded_channel();
    let clients: Vec<_> = (0..CLIENTS).map(|number| tokio::spawn(write(number, seen.clone(), done.clone()))).collect();
    let random = SeededRandom::new(0x70CE);
    for _ in 0..if nightly() { KILLS_NIGHTLY } else { KILLS } {
        for _ in 0..=random.next_u64() % LIFE_MAX {
            committed.recv().await.expect("clients go on");
        }
        // The other clients are in the middle of their statements.
        server.kill();
        server = Server::start_on(folder.path(), &["--max-wal-kb", "64"]);
        port.send((server.pg_port, false)).expect("clients listen");
    }
    port.send((server.pg_port, true)).expect("clients listen");
    let (mut tokens, mut in_doubt) = (0, 0);
    let client = server.connect().await;
    for (number, tally) in (0..CLIENTS).zip(join_all(clients).await) {
        let tally = tally.expect("clients do not panic");
        (tokens, in_doubt) = (tokens + tally.tokens, in_doubt + tally.in_doubt);
        for token in 0..tally.tokens {
            let found = rows_of(&client, &name(number, token)).await.expect("the server answers");
            assert_eq!(found, (true, expected(number)), "token {token} of client {number}");
        }
        let counted = client.query_one("SELECT n FROM counter WHERE client = $1", &[&number.cast_signed()]).await;
        let wanted = if number == COUNTING_CLIENT { tally.tokens.cast_signed() } else { 0 };
        assert_eq!(counted.expect("the server answers").get::<_, i64>(0), wanted, "what client {number} has counted");
    }
    let sql = "SELECT (SELECT count(*) FROM ledger) + (SELECT sum(n) FROM counter)::bigint, \
               (SELECT sum(rows) FROM sys.statement_outcome)::bigint";
    let row = client.query_one(sql, &[]).await.expect("the server answers");
    assert_eq!(row.get::<_, i64>(0), row.get::<_, i64>(1), "nothing is there that no token tells of");
    println!("{tokens} tokens; the answers to {in_doubt} statements were lost");
    assert!(0 < in_doubt && CLIENTS < tokens, "kills meet statements: {in_doubt} of {tokens}");
    assert!(server.stop(), "after all that it ends cleanly");
}

/// Counts of a client; all tokens below `tokens` are committed.
#[derive(Debug, Default)]
struct Tally {
    tokens: u64,
    /// Number of statements whose answer was lost.
    in_doubt: u64,
}

/// Client that increments a counter, which would reveal a statement that ran twice without leaving a row.
const COUNTING_CLIENT: u64 = 1;

fn name(client: u64, token: u64) -> String {
    format!("client {client}, token {token}")
}

/// Returns the number of rows that one of the client's tokens leaves in the ledger.
fn expected(client: u64) -> i64 {
    match client {
        0 | 2 => 1,
        COUNTING_CLIENT => 0,
        _ => ROWS,
    }
}

/// Writes under one token after the other until the last server is announced.
async fn write(number: u64, mut port: Port, done: mpsc::UnboundedSender<()>) -> Tally {
    let mut tally = Tally::default();
    let mut client = connect(&mut port).await;
    loop {
        match write_once(&client, number, &name(number, tally.tokens)).await {
            Ok(()) => {
                tally.tokens += 1;
                done.send(()).expect("somebody counts them");
            }
            Err(error) => {
                assert!(error.as_db_error().is_none(), "only the kill ends a statement: {error:?}");
                tally.in_doubt += 1;
                client = connect(&mut port).await;
                continue;
            }
        }
        if port.borrow().1 {
            return tally;
        }
    }
}

/// Connects to the current server, or to the next one.
async fn connect(port: &mut Port) -> Client {
    loop {
        let (now, _) = *port.borrow_and_update();
        if let Ok(client) = connect_to(now).await {
            return client;
        }
        port.changed().await.expect("the last server stays");
    }
}

async fn connect_to(port: u16) -> Result<Client, Error> {
    let address = format!("host=127.0.0.1 port={port} user=kiln dbname=kiln");
    let (client, connection) = tokio_postgres::connect(&address, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Queries the outcome first, writes if necessary, and sometimes repeats the statement.
async fn write_once(client: &Client, number: u64, token: &str) -> Result<(), Error> {
    let (is_committed, rows) = rows_of(client, token).await?;
    assert_eq!(rows, if is_committed { expected(number) } else { 0 }, "the outcome of {token} tells of its rows");
    client.batch_execute(&format!("SET kiln.statement_token = '{token}'")).await?;
    let told = run(client, number, token).await?;
    assert_eq!(told, if number == COUNTING_CLIENT { 1 } else { expected(number) }, "what is told of {token}");
    if token.ends_with('7') {
        assert_eq!(run(client, number, token).await?, told, "what is told of {token} again");
    }
    Ok(())
}

/// Returns whether the token was committed, and the number of its rows.
async fn rows_of(client: &Client, token: &str) -> Result<(bool, i64), Error> {
    let sql = "SELECT (SELECT outcome FROM sys.statement_outcome WHERE token = $1), (SELECT count(*) FROM ledger WHERE token = $1)";
    let row = client.query_one(sql, &[&token]).await?;
    Ok((row.get::<_, Option<&str>>(0) == Some("committed"), row.get(1)))
}

/// Runs the client's kind of statement; returns the reported number of rows.
async fn run(client: &Client, number: u64, token: &str) -> Result<i64, Error> {
    let insert = format!("INSERT INTO ledger VALUES ('{token}', 0)");
    let rows = match number {
        0 => run_simple(client, &insert).await?,
        COUNTING_CLIENT => {
            run_simple(client, &format!("UPDATE counter SET n = n + 1 WHERE client = {COUNTING_CLIENT}")).await?
        }
        2 => client.execute("INSERT INTO ledger VALUES ($1, $2)", &[&token, &7_i64]).await?,
        3 => {
            client.batch_execute("BEGIN").await?;
            let mut rows = 0;
            for _ in 0..ROWS {
                rows += run_simple(client, &insert).await?;
            }
            client.batch_execute("COMMIT").await?;
            rows
        }
        _ => {
            let sink = client.copy_in("COPY ledger FROM STDIN (FORMAT csv)").await?;
            let mut sink = pin!(sink);
            for row in 0..ROWS {
                sink.send(Bytes::from(format!("\"{token}\",{row}\n"))).await?;
            }
            sink.finish().await?
        }
    };
    Ok(rows.cast_signed())
}

/// Runs a statement through the simple protocol; returns the row count of its tag.
async fn run_simple(client: &Client, sql: &str) -> Result<u64, Error> {
    let messages = client.simple_query(sql).await?;
    let tag = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
        _ => None,
    });
    Ok(tag.expect("every statement has a tag"))
}

/// Failpoints of a commit, and whether the commit exists after a crash there.
const COMMIT_FAILPOINTS: [(&str, bool); 3] =
    [("commit-admitted", false), ("commit-durable", true), ("commit-visible", true)];
/// Commits that a start may make itself.
const COMMITS_OF_A_START: u64 = 3;

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_nobody_was_told_of_is_told_of_by_its_token() {
    let folder = TempDir::with_prefix("kiln-token-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    server.connect().await.batch_execute("CREATE TABLE ledger (token text, n bigint)").await.expect("it is new");
    assert!(server.stop());
    for (moment, is_there) in COMMIT_FAILPOINTS {
        let mut met = false;
        for time in 1..=COMMITS_OF_A_START + 1 {
            let point = format!("{moment}:{time}");
            let variables = [("KILN_FAILPOINT", point.as_str())];
            let Ok(server) = Server::try_start_on_with(folder.path(), &[], &variables) else { continue };
            let lost = match server.connect_as("user=kiln dbname=kiln").await {
                Ok(client) => {
                    let set = client.batch_execute(&format!("SET kiln.statement_token = '{point}'")).await;
                    set.is_ok() && run(&client, 0, &point).await.is_err()
                }
                Err(_) => false,
            };
            server.kill();
            let server = Server::start_on(folder.path(), &[]);
            let client = server.connect().await;
            let (is_committed, rows) = rows_of(&client, &point).await.expect("the server answers");
            assert_eq!(rows, i64::from(is_committed), "the outcome of {point} tells of its row");
            if lost {
                met = true;
                assert_eq!(is_committed, is_there, "the server ended at {point}");
            }
            client.batch_execute(&format!("SET kiln.statement_token = '{point}'")).await.expect("any token will do");
            assert_eq!(run(&client, 0, &point).await.expect("it runs, or is told of"), 1);
            assert_eq!(rows_of(&client, &point).await.expect("the server answers"), (true, 1), "{point}");
            assert!(server.stop());
        }
        assert!(met, "the statement comes to {moment}");
    }
}

fn sqlstate(error: &Error) -> &str {
    error.code().map_or("", |code| code.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_one_runs_and_all_are_told_of_it() {
    let server = Arc::new(Server::start());
    let setup = "CREATE TABLE t (a int) WITH (storage = row)";
    server.connect().await.batch_execute(setup).await.expect("the table is new");
    for round in 0..10 {
        let clients = (0..8).map(|_| {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                let client = server.connect().await;
                let token = format!("SET kiln.statement_token = 'round {round}'");
                client.batch_execute(&token).await.expect("any token will do");
                client.execute("INSERT INTO t VALUES ($1)", &[&round]).await.expect("it is told of the first")
            })
        });
        for told in join_all(clients).await {
            assert_eq!(told.expect("clients do not panic"), 1);
        }
    }
    let row = server.connect().await.query_one("SELECT count(*) FROM t", &[]).await.expect("the server answers");
    assert_eq!(row.get::<_, i64>(0), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_token_waits_as_for_any_lock() {
    let server = Server::start();
    let (first, second) = (server.connect().await, server.connect().await);
    first.batch_execute("CREATE TABLE t (a int)").await.expect("the table is new");
    for client in [&first, &second] {
        client.batch_execute("SET kiln.statement_token = 'one'").await.expect("any token will do");
    }
    first.batch_execute("BEGIN; INSERT INTO t VALUES (1)").await.expect("nobody has the token");
    second.batch_execute("SET lock_timeout = '50ms'").await.expect("it is a setting");
    let refused = second.execute("INSERT INTO t VALUES (1)", &[]).await.expect_err("the first has the token");
    assert_eq!(sqlstate(&refused), "55P03");
    second.batch_execute("SET lock_timeout = 0").await.expect("it is a setting");
    let waits = async {
        let watcher = server.connect().await;
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'StatementToken'";
        while watcher.query_one(sql, &[]).await.expect("the server answers").get::<_, i64>(0) == 0 {}
        let shown = watcher.query_one("SELECT outcome FROM sys.statement_outcome WHERE token = 'one'", &[]).await;
        assert_eq!(shown.expect("the server answers").get::<_, &str>(0), "in progress");
        first.batch_execute("ROLLBACK").await.expect("nothing is in the way");
    };
    let (told, ()) = tokio::join!(second.execute("INSERT INTO t VALUES (1)", &[]), waits);
    assert_eq!(told.expect("the first has rolled back"), 1);
    let row = first.query_one("SELECT count(*) FROM t", &[]).await.expect("the server answers");
    assert_eq!(row.get::<_, i64>(0), 1);
}

/// The object that a statement has created would already fail the parsing of its repeat.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_that_cannot_be_planned_is_told_of_the_first() {
    let server = Server::start();
    for _ in 0..2 {
        let client = server.connect_as("user=kiln dbname=kiln options='-c kiln.statement_token=makes'").await;
        let client = client.expect("the token may be set when the session begins");
        let made = client.execute("CREATE TABLE made AS SELECT n FROM generate_series(1, 5) AS s (n)", &[]).await;
        assert_eq!(made.expect("it is there, as it should be"), 5);
        let other = client.execute("CREATE TABLE made AS SELECT 1 AS n", &[]).await;
        assert_eq!(sqlstate(&other.expect_err("that is another text")), "42P07");
    }
    let client = server.connect().await;
    client.batch_execute("SET kiln.statement_token = 'fills'").await.expect("any token will do");
    for is_there in [true, false] {
        let filled = client.execute("INSERT INTO made VALUES (6)", &[]).await;
        assert_eq!(filled.expect("it is there, or was"), 1);
        if is_there {
            let rows = client.query_one("SELECT count(*) FROM made", &[]).await.expect("the server answers");
            assert_eq!(rows.get::<_, i64>(0), 6);
            server.connect().await.batch_execute("DROP TABLE made").await.expect("it is there");
        }
    }
    let other = client.execute("INSERT INTO made VALUES (7)", &[]).await;
    assert_eq!(sqlstate(&other.expect_err("that is another text")), "42P01");
}

/// Statements up to Sync are one transaction, and so is their repeat.
#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_sent_together_are_repeated_together() {
    let server = Server::start();
    for _ in 0..2 {
        let client = server.connect().await;
        client.batch_execute("CREATE TABLE IF NOT EXISTS t (a int)").await.expect("it may be there");
        client.batch_execute("SET kiln.statement_token = 'both'").await.expect("any token will do");
        let insert = client.prepare("INSERT INTO t VALUES ($1)").await.expect("the table is there");
        client.batch_execute("BEGIN").await.expect("no block is open");
        let both = tokio::join!(client.execute(&insert, &[&1]), client.execute(&insert, &[&2]));
        assert_eq!((both.0.expect("it is told of"), both.1.expect("it is told of")), (1, 1));
        client.batch_execute("COMMIT").await.expect("nothing is in the way");
    }
    let row = server.connect().await.query_one("SELECT count(*) FROM t", &[]).await.expect("the server answers");
    assert_eq!(row.get::<_, i64>(0), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_of_a_copy_is_a_part_of_what_is_repeated() {
    let server = Server::start();
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (a int); SET kiln.statement_token = 'copies'").await.expect("it is new");
    let copy = async |pieces: &[&'static str]| {
        let mut sink = pin!(client.copy_in("COPY t FROM STDIN").await?);
        for piece in pieces {
            sink.send(Bytes::from_static(piece.as_bytes())).await?;
        }
        sink.finish().await
    };
    assert_eq!(copy(&["1\n2\n", "3\n"]).await.expect("it is the first"), 3);
    assert_eq!(copy(&["1\n", "2\n3\n"]).await.expect("it is the same"), 3);
    let refused = copy(&["1\n2\n4\n"]).await.expect_err("it is another");
    assert_eq!(sqlstate(&refused), "22023");
    let row = client.query_one("SELECT count(*), sum(a)::bigint FROM t", &[]).await.expect("the server answers");
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (3, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_an_end_to_how_many_tokens_are_known() {
    let server = Server::start_with(&["--tokens-max", "2"], &[]);
    let client = server.connect().await;
    client.batch_execute("CREATE TABLE t (a int)").await.expect("the table is new");
    let write = async |token: &str| {
        client.batch_execute(&format!("SET kiln.statement_token = '{token}'")).await?;
        client.execute("INSERT INTO t VALUES (1)", &[]).await
    };
    for token in ["one", "two", "one"] {
        assert_eq!(write(token).await.expect("there is room"), 1);
    }
    assert_eq!(sqlstate(&write("three").await.expect_err("there is none left")), "53400");
    let row = client.query_one("SELECT count(*) FROM t", &[]).await.expect("the server answers");
    assert_eq!(row.get::<_, i64>(0), 2);
}
