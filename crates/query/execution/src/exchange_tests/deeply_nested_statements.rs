//! Deep and long statements return the same rows on workers as in one process.

use bench::statement_shapes::{SETUP, shapes};
use exchange::RunLocation;
use types::Condition;

use super::fixture::{Workers, in_one_process, on_workers};
use crate::sql_fixture::Sql;

/// Nesting levels of the statements: more than `prost` decodes in one message.
const SIZE: usize = 60;

/// Halves the size of joins, which take a minute in an unoptimized build.
fn size(shape: &str) -> usize {
    if ["join", "lateral"].iter().any(|word| shape.contains(word)) { SIZE / 2 } else { SIZE }
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_all_shapes_run_on_workers_as_alone() {
    let sql = Sql::new();
    sql.run(SETUP[0]).await.expect("the table can be made");
    // Rows of INSERT are not flushed, and such rows are read by the instance only.
    for shard in ["1,2,a,{}\n", "2,3,b,[]\n"] {
        sql.copy("t", shard.into()).await;
    }
    let workers = Workers::start(&sql, 2);
    let mut places = [0, 0];
    for shape in shapes() {
        let text = (shape.build)(size(shape.name));
        if !["select", "with"].iter().any(|word| text.starts_with(word)) {
            continue;
        }
        let expected = match sql.run(&text).await {
            Ok(_) => Ok(in_one_process(&sql, &text).await),
            Err(error) => Err(error.condition),
        };
        for (place, small_bytes) in [0, u64::MAX].into_iter().enumerate() {
            match (on_workers(&sql, &text, &workers.with_small_bytes(small_bytes)).await, &expected) {
                (Ok((rows, spread)), Ok(expected)) => {
                    assert_eq!(rows, *expected, "a {} {spread}", shape.name);
                    places[place] += usize::from(!matches!(spread, RunLocation::Instance(_)));
                }
                (Err(error), Err(expected)) if error.condition == *expected => {}
                (ran, expected) => panic!("a {}: {ran:?} instead of {expected:?}", shape.name),
            }
        }
    }
    assert!(places.iter().all(|ran| 30 < *ran), "{places:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_deep_is_refused_on_workers_too() {
    let sql = Sql::new();
    sql.run("create table t (i int)").await.expect("the table can be made");
    sql.copy("t", "1\n".into()).await;
    let workers = Workers::start(&sql, 2);
    let text = format!("select {}i{} from t", "abs(".repeat(20_000), ")".repeat(20_000));
    let refused = on_workers(&sql, &text, &workers.distribution).await.unwrap_err();
    assert_eq!(refused.condition, Condition::StatementTooComplex);
}
