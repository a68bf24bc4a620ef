//! Plans every query of TPC-H and TPC-DS down to operators, and compares intermediate plans with those of DataFusion's
//! own passes.

use binder::QueryPlan;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use functions::error::from_datafusion;
use operators::plan_query;
use optimizer::run_rules;
use tokio_util::sync::CancellationToken;
use types::SqlResult;

use super::fixture::Fixture;

async fn plan_all(ddl: &str, folder: &str, count: usize) {
    let fixture = Fixture::with_tables(ddl);
    let mut failures = Vec::new();
    for number in 1..=count {
        let path = format!("{}/../../../bench/queries/{folder}/q{number:02}.sql", env!("CARGO_MANIFEST_DIR"));
        let sql = std::fs::read_to_string(&path).expect("the query's text is in the repository");
        for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
            let planned = match fixture.query(statement) {
                Ok(query) => {
                    check_types(&query, number).expect("what is typed is coerced");
                    check_rules(&query, number);
                    plan_query(&query, &CancellationToken::new()).await.map(|_| ())
                }
                Err(error) => Err(error),
            };
            if let Err(error) = planned {
                failures.push(format!("{folder} {number}: {:?} {} {:?}", error.condition, error.message, error.detail));
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// Asserts that DataFusion's type coercion has nothing left to change.
fn check_types(query: &QueryPlan, number: usize) -> SqlResult<()> {
    let coerced = TypeCoercion::new().analyze(query.plan.clone(), query.state.config_options());
    let coerced = coerced.map_err(from_datafusion)?;
    assert_eq!(coerced.display_indent().to_string(), query.plan.display_indent().to_string(), "query {number}");
    Ok(())
}

/// Asserts that rules which skip a plan or some of its nodes would not have changed it.
fn check_rules(query: &QueryPlan, number: usize) {
    let (rules, state) = (query.state.optimizer(), query.state.as_ref());
    let by_all = rules.optimize(query.plan.clone(), state, |_, _| {});
    let by_some = run_rules(query.plan.clone(), &rules.rules, state).map(|passed| passed.plan);
    match (by_some, by_all) {
        (Ok(by_some), Ok(by_all)) => {
            let text = |plan: &LogicalPlan| without_numbers(&plan.display_indent().to_string());
            assert_eq!(text(&by_some), text(&by_all), "query {number}");
        }
        (by_some, by_all) => assert_eq!(by_some.is_ok(), by_all.is_ok(), "query {number}"),
    }
}

/// Removes the numbers in names that the optimizer generates.
fn without_numbers(plan: &str) -> String {
    let mut pieces = plan.split("__");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (word, rest) = piece.split_at(piece.find(|at: char| at.is_ascii_digit()).unwrap_or(piece.len()));
        text.push_str("__");
        text.push_str(word);
        text.push_str(rest.trim_start_matches(|at: char| at.is_ascii_digit()));
    }
    text
}

#[tokio::test]
async fn all_of_tpch() {
    plan_all(include_str!("../../../../../../bench/schema/tpch.sql"), "tpch", 22).await;
}

#[tokio::test]
async fn all_of_tpcds() {
    plan_all(include_str!("../../../../../../bench/schema/tpcds.sql"), "tpcds", 99).await;
}
