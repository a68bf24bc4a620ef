//! All 22 TPC-H and 99 TPC-DS answers at scale factor 1, loaded and asked over the wire, with the engine and without it, against the
//! reference answers.
//!
//! Reads `../shared/tpc` beside the project, and is skipped with one line where that is absent.

use bench::answers::{self, Row};
use bench::{Suite, load, run};
use types::SystemClock;

use crate::server::{Server, reference_data};

#[tokio::test(flavor = "multi_thread")]
async fn tpch_answers_are_right() {
    check_suite(Suite::Tpch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tpcds_answers_are_right() {
    check_suite(Suite::Tpcds).await;
}

async fn check_suite(suite: Suite) {
    let Some(folder) = reference_data() else {
        println!("skipped: no reference answers in ../shared/tpc");
        return;
    };
    let server = Server::start();
    let client = server.connect().await;
    load::load(&client, suite, 1.0, &SystemClock::new(), |_| {}).await.expect("the data loads");

    let mut wrong = Vec::new();
    let asked = ["off", "on"]
        .into_iter()
        .flat_map(|engine| suite.queries().iter().enumerate().map(move |query| (engine, query)));
    for (engine, (index, sql)) in asked {
        let number = index + 1;
        client
            .batch_execute(&format!("SET kiln.engine = {engine}"))
            .await
            .expect("the engine can be turned on and off");
        let path = folder.join(format!("{suite}/sf1/q{number:02}.csv"));
        let expected = answers::read_reference(&std::fs::read_to_string(&path).expect("each query has its answer"));
        match run::query(&client, sql).await {
            Ok(found) => {
                if let Err(difference) = same(&expected, &found, &approximate_columns(suite, number)) {
                    wrong.push(format!("q{number:02}, engine {engine}: {difference}"));
                }
            }
            Err(error) => wrong.push(format!(
                "q{number:02}, engine {engine}: {}",
                error.as_db_error().map_or("connection lost", |told| told.message())
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} {suite} answers are wrong:\n{}",
        wrong.len(),
        suite.queries().len(),
        wrong.join("\n")
    );
}

/// Five digits in averages and quotients, which follow PostgreSQL's scale; every other column text for text.
fn same(expected: &[Row], found: &[Row], approximate: &[Approximate]) -> Result<(), String> {
    for column in approximate {
        if let Some(unit) = column.unit {
            same_to_one_unit(&numbers(expected, column.index), &numbers(found, column.index), unit)?;
        }
    }
    let digits =
        |rows: &[Row]| without(rows, |index| approximate.iter().any(|one| one.index == index && one.unit.is_some()));
    answers::compare(&digits(expected), &digits(found))?;
    let exact = |rows: &[Row]| without(rows, |index| approximate.iter().any(|one| one.index == index));
    answers::compare_exactly(&exact(expected), &exact(found))
}

/// A column that holds an average, a quotient or a standard deviation.
struct Approximate {
    index: usize,
    /// Set for a quotient that the query rounds: a tie falls one way in decimal and the other in binary arithmetic, which the
    /// reference answers come from, so that values may differ by one unit of the last digit.
    unit: Option<f64>,
}

fn approximate_columns(suite: Suite, query: usize) -> Vec<Approximate> {
    let text = include_str!("approximate_columns.txt");
    let key = format!("{suite} {query} ");
    let columns = text.lines().find_map(|line| line.strip_prefix(&key)).unwrap_or_default();
    let column = |word: &str| {
        let (index, decimals) = word.split_once('/').map_or((word, None), |(index, decimals)| (index, Some(decimals)));
        let unit = decimals.map(|decimals| 10_f64.powi(-decimals.parse::<i32>().expect("decimals are a number")));
        Approximate { index: index.parse().expect("columns are numbers"), unit }
    };
    columns.split_whitespace().map(column).collect()
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
