//! Every query of the two benchmarks gets operators.

use tokio_util::sync::CancellationToken;

use super::fixture::Fixture;

async fn plan_all(ddl: &str, folder: &str, count: usize) {
    let fixture = Fixture::of_tables(ddl);
    let mut failures = Vec::new();
    for number in 1..=count {
        let path = format!("{}/../../bench/queries/{folder}/q{number:02}.sql", env!("CARGO_MANIFEST_DIR"));
        let sql = std::fs::read_to_string(&path).expect("the query's text is in the repository");
        for statement in sql.split(';').filter(|statement| !statement.trim().is_empty()) {
            let planned = match fixture.query(statement) {
                Ok(query) => query.physical(&CancellationToken::new()).await.map(|_| ()),
                Err(error) => Err(error),
            };
            if let Err(error) = planned {
                failures.push(format!("{folder} {number}: {:?} {} {:?}", error.condition, error.message, error.detail));
            }
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

#[tokio::test]
async fn all_of_tpch() {
    plan_all(include_str!("../../../../../bench/schema/tpch.sql"), "tpch", 22).await;
}

#[tokio::test]
async fn all_of_tpcds() {
    plan_all(include_str!("../../../../../bench/schema/tpcds.sql"), "tpcds", 99).await;
}
