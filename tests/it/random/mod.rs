//! Random queries over random tables have the same rows everywhere: on Kiln with the engine (twice), without it,
//! without the optimizer, with little memory, with more threads than cores and on worker processes, and on
//! PostgreSQL.
//!
//! A failing query prints its seeds: `RANDOM=TABLES:QUERY` runs it alone, `RANDOM=9-40` the queries of these sets of
//! tables.

mod aggregate;
mod choices;
mod condition;
mod lateral;
mod query;
mod tables;
mod value;
mod window;

use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};
use types::{Clock, SystemClock};

use self::choices::RandomChoices;
use self::query::{Generator, Query};
use self::tables::{Table, ValueType};
use crate::postgres::Postgres;
use crate::server::Server;

/// Queries per set of tables.
const QUERIES: u64 = 250;
/// Additional queries with a WITH query that is read twice.
const WITH_QUERIES: u64 = 50;
/// Number of sets of tables, and the duration of a nightly run, which creates further ones.
const SETS: u64 = 8;
const NIGHT: Duration = Duration::from_secs(2 * 60 * 60);
const TABLES: usize = 5;
/// Memory so small that some joins, aggregations and sorts of thousands of rows exceed it, which the log shows.
const LITTLE_MEMORY: [&str; 4] = ["--memory-mb", "1", "--log", "info,compile=debug"];
const POSTGRESQL: &str = "PostgreSQL";
const SPILLED: &str = "exceeded memory and were spilled";
const SORTED: &str = "exceeded memory and were spilled as sorted runs";
/// More threads than most machines have cores, for parallel operators.
const MANY_THREADS: [&str; 2] = ["--threads", "7"];
/// Cluster whose workers divide every query, however small.
const WORKERS: &str = "CREATE CLUSTER three WITH (NODE_COUNT = 3, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const ON_WORKERS: &str = "USE CLUSTER three; SET min_parallel_table_scan_size = 0";
/// Maximum number of failures printed.
const FAILURES_SHOWN_MAX: usize = 8;

#[tokio::test(flavor = "multi_thread")]
async fn random_queries_have_the_same_rows_everywhere() {
    let postgres = Postgres::start();
    if postgres.is_none() {
        println!("skipped in part: PostgreSQL is not installed");
    }
    let (server, small) = (Server::start(), Server::start_with(&LITTLE_MEMORY, &[]));
    let wide = Server::start_with(&MANY_THREADS, &[]);
    server.connect().await.batch_execute(WORKERS).await.expect("a cluster can be made");
    let clock = SystemClock::new();
    let start = clock.monotonic();
    let is_night = std::env::var_os("KILN_NIGHTLY").is_some();
    let pair = |text: &str, mark| {
        let (first, second) = text.split_once(mark)?;
        Some((first.parse::<u64>().ok()?, second.parse::<u64>().ok()?))
    };
    let wanted = std::env::var("RANDOM").unwrap_or_default();
    let (alone, among) = (pair(&wanted, ':'), pair(&wanted, '-'));
    assert!(
        wanted.is_empty() || alone.is_some() || among.is_some(),
        "RANDOM is TABLES:QUERY or TABLES-TABLES: {wanted}"
    );
    let (mut failures, mut counts) = (Vec::new(), Counts::default());
    let sets = among.map_or(1..=u64::MAX, |(first, last)| first..=last);
    let sets = alone.map_or(sets, |(tables, _)| tables..=tables);
    for set in sets {
        let is_over = if is_night { NIGHT < clock.monotonic() - start } else { SETS < set };
        if FAILURES_SHOWN_MAX <= failures.len() || (is_over && wanted.is_empty()) {
            break;
        }
        let chance = RandomChoices::new(set);
        let tables: Vec<Table> = (0..TABLES).map(|number| Table::any(&chance, number)).collect();
        let sides = sides([&server, &small, &wide], postgres.as_ref(), &tables, set).await;
        let queries = alone.map_or(1..=QUERIES + WITH_QUERIES, |(_, query)| query..=query);
        for number in queries {
            let chance = RandomChoices::new(set << 32 | number);
            let generator = Generator::new(&chance, &tables);
            let query = if number <= QUERIES { generator.query(3, None) } else { generator.twice(3) };
            if let Err(difference) = compare(&sides, &query, &mut counts).await {
                failures.push(format!("RANDOM={set}:{number}\n{}\n{difference}", query.sql));
            }
        }
    }
    let count = |told: &str| small.log().matches(told).count();
    let (spilled, sorted) = (count(SPILLED), count(SORTED));
    println!("{counts:?}, {spilled} joins, groups and sorts spilled, {sorted} of them sorts");
    assert!(failures.is_empty(), "{} queries differ:\n\n{}", failures.len(), failures.join("\n\n"));
    assert!(alone.is_some() || (sorted < spilled && 0 < sorted), "some joins and groups spill, and some sorts");
    assert!(counts.failed * 20 <= counts.queries, "most queries have an answer: {counts:?}");
}

/// Counts of queries by outcome.
#[derive(Debug, Default)]
struct Counts {
    queries: u64,
    rows: u64,
    /// Queries without rows.
    empty: u64,
    /// Queries that fail everywhere in their computations.
    failed: u64,
    /// Queries that ran out of memory on the server with little memory.
    out_of_memory: u64,
    /// Queries that timed out without the optimizer.
    slow: u64,
}

/// Server and settings on which queries run.
struct Contestant {
    name: &'static str,
    client: Client,
    /// True if it creates the tables that other sides of the server use.
    makes_tables: bool,
}

async fn sides(
    [server, small, wide]: [&Server; 3],
    postgres: Option<&Postgres>,
    tables: &[Table],
    set: u64,
) -> Vec<Contestant> {
    let schema = format!("random_{set}");
    let mut sides = Vec::new();
    for (name, server, settings, makes_tables) in [
        ("engine", server, "", true),
        // Second run, which finds cached fragments.
        ("again", server, "", false),
        ("operators", server, "SET kiln.engine = off", false),
        ("as written", server, "SET kiln.engine = off; SET kiln.optimizer = off", false),
        ("little memory", small, "", true),
        ("many threads", wide, "", true),
        ("workers", server, ON_WORKERS, false),
    ] {
        let client = server.connect().await;
        client.batch_execute(settings).await.expect("settings are known");
        sides.push(Contestant { name, client, makes_tables });
    }
    if let Some(postgres) = postgres {
        sides.push(Contestant { name: POSTGRESQL, client: postgres.connect().await, makes_tables: true });
    }
    for side in &sides {
        let prepare = format!("SET statement_timeout = '60s'; SET search_path = {schema}");
        if side.makes_tables {
            let again = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}");
            side.client.batch_execute(&again).await.expect("a schema is made");
        }
        side.client.batch_execute(&prepare).await.expect("the schema is set");
        if side.makes_tables {
            let chance = RandomChoices::new(!set);
            for statement in tables.iter().flat_map(|table| table.statements(&chance, side.name != POSTGRESQL)) {
                let made = side.client.batch_execute(&statement).await;
                made.unwrap_or_else(|error| panic!("{}: {error:?}: {statement}", side.name));
            }
            // In every other set all rows are flushed: workers read all of them from storage.
            if set.is_multiple_of(2) && side.name != POSTGRESQL {
                side.client.batch_execute("VACUUM").await.expect("rows are flushed");
            }
        }
    }
    sides
}

/// Runs the query on all sides; the error describes differing answers.
async fn compare(sides: &[Contestant], query: &Query, counts: &mut Counts) -> Result<(), String> {
    counts.queries += 1;
    let mut first: Option<(&str, Answer)> = None;
    for side in sides {
        let answer = run_query(&side.client, query).await;
        match &answer {
            Answer::Failed { code, .. } if code == "53200" && side.name == "little memory" => {
                counts.out_of_memory += 1;
                continue;
            }
            Answer::Failed { code, .. } if code == "57014" && side.name == "as written" => {
                counts.slow += 1;
                continue;
            }
            _ => {}
        }
        match &first {
            None => {
                match &answer {
                    Answer::Failed { .. } => counts.failed += 1,
                    Answer::Rows(rows) => {
                        counts.rows += rows.len() as u64;
                        counts.empty += u64::from(rows.is_empty());
                    }
                }
                first = Some((side.name, answer));
            }
            Some((name, expected)) => {
                expected.same(&answer).map_err(|told| format!("{name} and {}: {told}", side.name))?;
            }
        }
    }
    Ok(())
}

#[derive(Debug)]
enum Answer {
    Rows(Vec<String>),
    Failed { code: String, message: String },
}

impl Answer {
    fn same(&self, other: &Self) -> Result<(), String> {
        match (self, other) {
            (Self::Rows(left), Self::Rows(right)) => {
                let differ = left.iter().zip(right).find(|(left, right)| left != right);
                match differ {
                    Some((left, right)) => Err(format!("{left}\ninstead of {right}")),
                    None if left.len() != right.len() => Err(format!("{} rows and {}", left.len(), right.len())),
                    None => Ok(()),
                }
            }
            // Failing computations may occur in another order, or only where they are needed.
            (Self::Failed { code, .. }, Self::Failed { code: other, .. }) if code[..2] == other[..2] => Ok(()),
            (left, right) => Err(format!("{}\ninstead of {}", left.in_words(), right.in_words())),
        }
    }

    fn in_words(&self) -> String {
        match self {
            Self::Rows(rows) => format!("{} rows", rows.len()),
            Self::Failed { code, message } => format!("{code}: {message}"),
        }
    }
}

async fn run_query(client: &Client, query: &Query) -> Answer {
    let messages = match client.simple_query(&query.sql).await {
        Ok(messages) => messages,
        Err(error) => {
            let (code, message) = match error.as_db_error() {
                Some(told) => (told.code().code().to_owned(), told.message().to_owned()),
                None => ("no answer".to_owned(), error.to_string()),
            };
            return Answer::Failed { code, message };
        }
    };
    let mut rows = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            let values = query.columns.iter().enumerate().map(|(column, kind)| shown(row.get(column), *kind));
            rows.push(values.collect::<Vec<_>>().join("|"));
        }
    }
    if !query.is_ordered {
        rows.sort();
    }
    Answer::Rows(rows)
}

/// Normalizes a value: numerics lose trailing zeros, whose number PostgreSQL keeps per value, and negative zeros
/// become zero, as DISTINCT may keep either.
fn shown(value: Option<&str>, kind: ValueType) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("-0") if matches!(kind, ValueType::Float | ValueType::Real) => "0".to_owned(),
        Some(digits) if matches!(kind, ValueType::Numeric | ValueType::WideNumeric) && digits.contains('.') => {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        Some(text) => text.to_owned(),
    }
}
