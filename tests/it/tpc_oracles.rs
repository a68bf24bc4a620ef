//! The 22 TPC-H and 99 TPC-DS queries at a small scale: the engine returns the same rows as the operators, as the
//! operators without the optimizer, and as PostgreSQL.
//!
//! The final LIMIT is removed, since tied rows may differ.

use std::collections::BTreeMap;
use std::time::Duration;

use bench::result_comparison::Row;
use bench::{Suite, query_benchmark, table_load};
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::postgres::Postgres;
use crate::server::Server;
use crate::tpc::{Oracle, same};

/// Scale factor: small enough for unoptimized plans and for PostgreSQL without indexes.
const SCALE: f64 = 0.02;

/// Time limit of an oracle per query; slower queries are reported but not compared.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of the 121 queries that an oracle may skip for that reason: a loaded machine is slow, not wrong.
const SLOW_MAX: usize = 12;

/// Settings of the side under test, and of Kiln's own oracles.
const OWN: &str = "SET kiln.engine = on";
const MODES: [(&str, &str); 2] = [
    ("the operators", "SET kiln.engine = off"),
    ("the operators without the optimizer", "SET kiln.engine = off; SET kiln.optimizer = off"),
];

#[tokio::test(flavor = "multi_thread")]
async fn tpch_answers_are_those_of_all_oracles() {
    compare_suite(Suite::Tpch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tpcds_answers_are_those_of_all_oracles() {
    compare_suite(Suite::Tpcds).await;
}

async fn compare_suite(suite: Suite) {
    let server = Server::start();
    let own = server.connect().await;
    table_load::load(&own, suite, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
    own.batch_execute(OWN).await.expect("the engine can be turned on");

    let mut oracles = Vec::new();
    for (name, set) in MODES {
        let client = server.connect().await;
        client.batch_execute(set).await.expect("modes can be set");
        oracles.push((name, client));
    }
    let postgres = Postgres::start();
    if let Some(postgres) = &postgres {
        let client = postgres.connect().await;
        table_load::load(&client, suite, SCALE, &SystemClock::new(), |_| {}).await.expect("the data loads");
        client.batch_execute("ANALYZE").await.expect("PostgreSQL counts its rows");
        oracles.push(("PostgreSQL", client));
    } else {
        println!("skipped: PostgreSQL is not installed, answers are compared with those of operators alone");
    }

    let (mut wrong, mut slow) = (Vec::new(), BTreeMap::<&str, Vec<usize>>::new());
    for (index, sql) in suite.queries().iter().enumerate() {
        let number = index + 1;
        let sql = without_last_limit(sql);
        let answer = query_benchmark::run_query(&own, sql).await.map_err(|error| error_text(&error));
        for (name, oracle) in &oracles {
            let Some(theirs) = ask(oracle, sql).await else {
                slow.entry(name).or_default().push(number);
                continue;
            };
            let compared = match (&theirs, &answer) {
                (Ok(theirs), Ok(rows)) => same(theirs, rows, suite, number, Oracle::Postgres),
                // With so few rows some sums that queries divide by are zero.
                (Err(theirs), Err(own)) if theirs == own => Ok(()),
                (Ok(_), Err(own)) => Err(format!("it has rows, the engine fails: {own}")),
                (Err(theirs), _) => Err(format!("it fails: {theirs}")),
            };
            wrong.extend(compared.err().map(|difference| format!("q{number:02}, {name}: {difference}")));
        }
    }
    for (name, numbers) in &slow {
        println!("{suite}: {name} took more than {} s for {numbers:?}, which are not compared", PATIENCE.as_secs());
    }
    assert!(wrong.is_empty(), "{suite} answers that differ:\n{}", wrong.join("\n"));
    assert!(slow.values().all(|numbers| numbers.len() <= SLOW_MAX), "most are compared: {slow:?}");
}

/// Returns the rows of `sql` or its error; `None` if it takes too long.
async fn ask(oracle: &Client, sql: &str) -> Option<Result<Vec<Row>, String>> {
    let clock = SystemClock::new();
    tokio::select! {
        rows = query_benchmark::run_query(oracle, sql) => Some(rows.map_err(|error| error_text(&error))),
        () = clock.sleep(PATIENCE) => {
            oracle.cancel_token().cancel_query(tokio_postgres::NoTls).await.expect("the server takes a cancellation");
            // The next statement is answered after the cancelled one has ended; a late cancel may hit it.
            let _ = oracle.batch_execute("ROLLBACK").await;
            None
        }
    }
}

fn error_text(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |told| told.message().to_owned())
}

/// Returns the query without its final LIMIT.
fn without_last_limit(sql: &str) -> &str {
    let trimmed = sql.trim_end().trim_end_matches(';').trim_end();
    match trimmed.rsplit_once("LIMIT ") {
        Some((query, count)) if count.bytes().all(|byte| byte.is_ascii_digit()) => query,
        _ => sql,
    }
}
