//! All 22 TPC-H and 99 TPC-DS answers at scale factor 1 against the reference answers: loaded and queried over the
//! wire, with and without the engine, on worker processes with every join distribution, and for TPC-H with so little
//! memory that joins and aggregations spill.
//!
//! Reads `../shared/tpc` beside the project, and is skipped with one line if that does not exist.

use std::path::Path;

use bench::result_comparison::{self, Row};
use bench::{Suite, query_benchmark, table_load};
use tempfile::TempDir;
use tokio_postgres::SimpleQueryMessage;
use types::SystemClock;

use crate::cluster::wait_until;
use crate::server::{Server, reference_data};

/// Less memory than most queries' joins or aggregations need.
const LITTLE_MEMORY: [&str; 4] = ["--memory-mb", "40", "--cache-memory-mb", "256"];

const FOUR_WORKERS: &str = "CREATE CLUSTER four WITH (NODE_COUNT = 4, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";

/// The top twenty rows of this query alone sometimes exceed the memory.
const OUT_OF_MEMORY: &str = "q10, engine on: out of memory";

#[tokio::test(flavor = "multi_thread")]
async fn tpch_answers_are_right() {
    check_suite(Suite::Tpch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tpcds_answers_are_right() {
    check_suite(Suite::Tpcds).await;
}

async fn check_suite(suite: Suite) {
    let Some(answers) = reference_data() else {
        println!("skipped: no reference answers in ../shared/tpc");
        return;
    };
    let folder = TempDir::with_prefix("kiln-test-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &[]);
    let client = server.connect().await;
    table_load::load(&client, suite, 1.0, &SystemClock::new(), |_| {}).await.expect("the data loads");
    let mut wrong = Vec::new();
    for engine in ["off", "on"] {
        let set = format!("SET kiln.engine = {engine}");
        wrong.extend(check_all(&server, suite, &answers, &format!("engine {engine}"), &set).await);
    }
    client.batch_execute(FOUR_WORKERS).await.expect("a cluster can be made");
    wait_until(&client, "SELECT count(*) = 4 FROM sys.worker WHERE cluster = 'four' AND state = 'ready'").await;
    for exchange in ["shuffle", "broadcast"] {
        let set =
            format!("USE CLUSTER four; SET min_parallel_table_scan_size = 0; SET kiln.join_exchange = {exchange}");
        wrong.extend(check_all(&server, suite, &answers, &format!("four workers, {exchange}"), &set).await);
    }
    let divided = count_divided(&server, suite).await;
    println!("{divided} of the {suite} queries are divided among workers");
    let (all, least) = (suite.queries().len(), if suite == Suite::Tpch { 22 } else { 60 });
    assert!(least <= divided, "of {all} {suite} queries only {divided} are divided among workers");
    // Its workers would share the little memory of the next server.
    client.batch_execute("DROP CLUSTER four").await.expect("it is there");
    drop(client);
    if suite == Suite::Tpch {
        assert!(server.stop(), "it ends when asked");
        let server = Server::start_on(folder.path(), &LITTLE_MEMORY);
        let answered = check_all(&server, suite, &answers, "engine on", "SET kiln.engine = on").await;
        wrong.extend(answered.into_iter().filter(|told| told != OUT_OF_MEMORY));
        let spilled = spilled_queries(&server, suite).await;
        println!("{} of the {suite} queries spill with little memory", spilled.len());
        assert!(1 < spilled.len(), "queries spill: {spilled:?}");
    }
    let asked = suite.queries().len();
    assert!(wrong.is_empty(), "of {asked} {suite} queries these answers are wrong:\n{}", wrong.join("\n"));
}

/// Runs all queries; returns descriptions of wrong answers.
async fn check_all(server: &Server, suite: Suite, answers: &Path, way: &str, set: &str) -> Vec<String> {
    let client = server.connect().await;
    client.batch_execute(set).await.expect("sessions choose how their queries run");
    let mut wrong = Vec::new();
    for (index, sql) in suite.queries().iter().enumerate() {
        let number = index + 1;
        let path = answers.join(format!("{suite}/sf1/q{number:02}.csv"));
        let expected =
            result_comparison::read_reference(&std::fs::read_to_string(&path).expect("each query has its answer"));
        match query_benchmark::run_query(&client, sql).await {
            Ok(found) => {
                if let Err(difference) = same(&expected, &found, suite, number, Oracle::Reference) {
                    wrong.push(format!("q{number:02}, {way}: {difference}"));
                }
            }
            Err(error) => wrong.push(format!(
                "q{number:02}, {way}: {}",
                error.as_db_error().map_or("connection lost", |told| told.message())
            )),
        }
    }
    wrong
}

/// Returns the number of queries that the cluster `four` divides among its workers by its own choice.
async fn count_divided(server: &Server, suite: Suite) -> usize {
    let client = server.connect().await;
    client.batch_execute("USE CLUSTER four; SET min_parallel_table_scan_size = 0").await.expect("it is there");
    let mut divided = 0;
    for sql in suite.queries().iter().filter(|sql| !sql.contains("CREATE")) {
        let plan = client.simple_query(&format!("EXPLAIN (ANALYZE) {sql}")).await.unwrap_or_default();
        let is_told = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("Runs: on 4 workers"),
            _ => false,
        };
        divided += usize::from(plan.iter().any(is_told));
    }
    divided
}

/// Returns the numbers of the queries that spill according to EXPLAIN.
async fn spilled_queries(server: &Server, suite: Suite) -> Vec<usize> {
    let client = server.connect().await;
    let mut spilled = Vec::new();
    for (index, sql) in suite.queries().iter().enumerate().filter(|(_, sql)| !sql.contains("CREATE")) {
        let plan = client.simple_query(&format!("EXPLAIN (ANALYZE) {sql}")).await.unwrap_or_default();
        let is_told = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).is_some_and(|line| line.contains("Spilled Parts")),
            _ => false,
        };
        if plan.iter().any(is_told) {
            spilled.push(index + 1);
        }
    }
    spilled
}

/// Source of the expected answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oracle {
    /// Reference answers beside the project.
    Reference,
    Postgres,
}

/// Compares answers: five digits in averages and quotients, which follow PostgreSQL's scale; all other columns
/// exactly.
pub(crate) fn same(expected: &[Row], found: &[Row], suite: Suite, query: usize, beside: Oracle) -> Result<(), String> {
    let approximate = approximate_columns(suite, query, beside);
    for column in &approximate {
        if let Some(unit) = column.unit {
            same_to_one_unit(&numbers(expected, column.index), &numbers(found, column.index), unit)?;
        }
    }
    let digits =
        |rows: &[Row]| without(rows, |index| approximate.iter().any(|one| one.index == index && one.unit.is_some()));
    result_comparison::compare(&digits(expected), &digits(found))?;
    let exact = |rows: &[Row]| without(rows, |index| approximate.iter().any(|one| one.index == index));
    result_comparison::compare_exactly(&exact(expected), &exact(found))
}

/// Column with an average, a quotient or a standard deviation.
struct Approximate {
    index: usize,
    /// Unit of the last digit, for a rounded quotient: ties round differently in decimal arithmetic and in the binary
    /// arithmetic of the reference answers, so that values may differ by one unit.
    unit: Option<f64>,
}

fn approximate_columns(suite: Suite, query: usize, beside: Oracle) -> Vec<Approximate> {
    let text = include_str!("approximate_columns.txt");
    let key = format!("{suite} {query} ");
    let columns = text.lines().find_map(|line| line.strip_prefix(&key)).unwrap_or_default();
    let column = |word: &str| {
        let word = match word.strip_suffix('~') {
            Some(_) if beside == Oracle::Reference => return None,
            Some(word) => word,
            None => word,
        };
        let (index, decimals) = word.split_once('/').map_or((word, None), |(index, decimals)| (index, Some(decimals)));
        let unit = decimals.map(|decimals| 10_f64.powi(-decimals.parse::<i32>().expect("decimals are a number")));
        Some(Approximate { index: index.parse().expect("columns are numbers"), unit })
    };
    columns.split_whitespace().filter_map(column).collect()
}

fn without(rows: &[Row], is_left_out: impl Fn(usize) -> bool) -> Vec<Row> {
    let kept = |row: &Row| {
        let columns = row.iter().enumerate().filter(|(index, _)| !is_left_out(*index));
        columns.map(|(_, value)| value.clone()).collect()
    };
    rows.iter().map(kept).collect()
}

fn numbers(rows: &[Row], column: usize) -> Vec<f64> {
    let values = rows.iter().filter_map(|row| row.get(column)?.as_deref()?.parse().ok());
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn same_to_one_unit(expected: &[f64], found: &[f64], unit: f64) -> Result<(), String> {
    let far = expected.iter().zip(found).find(|(a, b)| unit * 1.001 < (*a - *b).abs());
    match far {
        Some((a, b)) => Err(format!("expected {a}, found {b} in a rounded column")),
        None if expected.len() != found.len() => Err("numbers are missing in a rounded column".to_owned()),
        None => Ok(()),
    }
}
