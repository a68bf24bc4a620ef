//! Tests that decoded plans return the same rows, and that every field of a message is needed for that.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use binder::StatementPlan;
use datafusion::common::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};
use futures::FutureExt;
use operators::{Threading, plan_operators};
use tokio_util::sync::CancellationToken;

use super::{decode, display, encode, message, queries};
use crate::fixtures::context;
use crate::sql_fixture::{Sql, texts};

/// Longer than a query of so few rows takes on any machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of queries to try before a field counts as unused.
const TRIES: usize = 40;
/// Fields that only EXPLAIN ANALYZE needs.
const EXPLAIN_ONLY: [&str; 2] = ["aggregate function 8", "operator.Scan.scan.name"];

/// Output of a plan: its schema with the metadata of fields, and its rows.
#[derive(Debug, PartialEq)]
struct Output {
    schema: SchemaRef,
    rows: Vec<String>,
}

/// Plan of a query and its context.
struct Case {
    plan: Arc<dyn ExecutionPlan>,
    /// The plan encoded before execution: what filters learn during execution is not part of it.
    bytes: Vec<u8>,
    task: Arc<TaskContext>,
    /// True if the order of rows is determined.
    is_ordered: bool,
}

impl Case {
    /// Plans a query; `None` if it is refused.
    async fn plan(sql: &Sql, query: &str, division: Threading) -> Option<Self> {
        let StatementPlan::Query(plan) = sql.plan(query).unwrap_or_else(|error| panic!("{query}: {error}")) else {
            panic!("{query} is no query")
        };
        let stop = CancellationToken::new();
        let optimized = plan.optimized(&stop).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let operators = plan_operators(&plan, &optimized, division, &stop).await.ok()?;
        exchange::check_distributable(&operators).ok()?;
        let is_ordered =
            query.rfind(')') < query.rfind("order by") && operators.output_partitioning().partition_count() == 1;
        let bytes = encode(&operators);
        Some(Self { plan: operators, bytes, task: context().task_context(&plan.state), is_ordered })
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>) -> Result<Output, String> {
        let schema = plan.schema();
        let collecting = async {
            let batches = collect(plan, Arc::clone(&self.task)).await?;
            Ok::<Vec<String>, DataFusionError>(
                batches.iter().flat_map(texts).map(|row| without_last_digits(&row)).collect(),
            )
        };
        let mut rows = match tokio::time::timeout(PATIENCE, AssertUnwindSafe(collecting).catch_unwind()).await {
            Ok(Ok(rows)) => rows.map_err(|error| error.to_string())?,
            Ok(Err(_)) => return Err("a panic".to_owned()),
            Err(_) => return Err("no end".to_owned()),
        };
        if !self.is_ordered {
            rows.sort();
        }
        Ok(Output { schema, rows })
    }

    /// Decodes and runs the plan in `bytes`.
    async fn run_bytes(&self, sql: &Sql, bytes: &[u8]) -> Result<Output, String> {
        self.run(decoded(sql, bytes)?).await
    }

    /// Returns whether `bytes`, in which the field `key` is cleared, gives anything other than `expected`.
    async fn notices(&self, sql: &Sql, key: &str, bytes: &[u8], expected: &Output) -> bool {
        let Ok(plan) = decoded(sql, bytes) else { return true };
        if EXPLAIN_ONLY.contains(&key) {
            return decoded(sql, &self.bytes).is_ok_and(|whole| display(&plan) != display(&whole));
        }
        plan.schema() != expected.schema || self.run(plan).await.as_ref() != Ok(expected)
    }
}

/// Digits of a float that do not depend on the order of additions.
const DIGITS: usize = 12;

/// Returns the row with rounded floats.
fn without_last_digits(row: &str) -> String {
    let is_float = |part: &str| part.contains('.') && part.parse::<f64>().is_ok();
    let cut =
        |part: &str| part.parse::<f64>().map_or_else(|_| part.to_owned(), |value| format!("{value:.*e}", DIGITS - 1));
    row.split_inclusive([' ', ',', '|', '}', '{', ']', '['])
        .map(|part| {
            let number = part.trim_end_matches([' ', ',', '|', '}', '{', ']', '[']);
            if is_float(number) { format!("{}{}", cut(number), &part[number.len()..]) } else { part.to_owned() }
        })
        .collect()
}

fn decoded(sql: &Sql, bytes: &[u8]) -> Result<Arc<dyn ExecutionPlan>, String> {
    let decoded = std::panic::catch_unwind(AssertUnwindSafe(|| decode(sql, bytes)));
    decoded.map_err(|_| "a panic".to_owned())?.map_err(|error| error.to_string())
}

fn all_queries() -> Vec<String> {
    queries::OPERATORS.iter().map(|query| (*query).to_owned()).chain(queries::calls()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_back_gives_the_same_rows() {
    let sql = queries::tables().await;
    let (mut stayed, mut ran, mut failures) = (Vec::new(), 0, Vec::new());
    for query in all_queries() {
        for division in [Threading::Single, Threading::Multiple] {
            let Some(case) = Case::plan(&sql, &query, division).await else {
                stayed.push(query.clone());
                continue;
            };
            let expected = case.run(Arc::clone(&case.plan)).await;
            let again = case.run_bytes(&sql, &case.bytes).await;
            ran += usize::from(expected.is_ok());
            if again != expected {
                failures.push(format!("{query}\n  {expected:?}\n  {again:?}\n{}", display(&case.plan)));
            }
        }
    }
    failures.truncate(5);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(stayed.len() * 20 < ran, "{ran} ran, and these do not leave: {stayed:#?}");
}

/// File of fields that may be cleared without a visible effect: prefix of the name, a tab, the reason.
const UNUSED_FIELDS: &str = "src/exchange_tests/codec/idle_fields.txt";
const IDLE_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn no_field_is_cleared_unnoticed() {
    let sql = queries::tables().await;
    let mut noticed = BTreeSet::new();
    let mut unnoticed: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for query in all_queries() {
        for division in [Threading::Multiple, Threading::Single] {
            let Some(case) = Case::plan(&sql, &query, division).await else { continue };
            let Ok(expected) = case.run(Arc::clone(&case.plan)).await else { continue };
            let is_wanted = |key: &str| {
                let tries = unnoticed.get(key).map_or(0, |(tries, _)| *tries);
                !noticed.contains(key) && tries < TRIES
            };
            let mut copies: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
            message::cleared(&case.bytes, &is_wanted, &mut |key, bytes| {
                copies.entry(key).or_default().push(bytes);
            });
            for (key, copies) in copies {
                // One of several fields of a kind is enough; the last is closest to the rows.
                let mut is_noticed = false;
                for bytes in copies.iter().rev().take(3) {
                    is_noticed |= case.notices(&sql, &key, bytes, &expected).await;
                    if is_noticed {
                        break;
                    }
                }
                if is_noticed {
                    unnoticed.remove(&key);
                    noticed.insert(key);
                } else {
                    let (tries, seen) = unnoticed.entry(key).or_default();
                    *tries += 1;
                    seen.clone_from(&query);
                }
            }
        }
    }
    let idle = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(UNUSED_FIELDS)).unwrap();
    let idle: Vec<&str> = idle.lines().map(|line| line.split_once('\t').expect("a field and a reason").0).collect();
    let is_idle = |key: &String| idle.iter().any(|begin| key.starts_with(begin));
    let failures: Vec<_> = unnoticed.iter().filter(|(key, _)| !is_idle(key)).collect();
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), noticed.len() + unnoticed.len());
    let useless: Vec<_> = idle.iter().filter(|begin| !unnoticed.keys().any(|key| key.starts_with(**begin))).collect();
    assert!(useless.is_empty() && idle.len() <= IDLE_MAX, "{} fields are idle, and not {useless:?}", idle.len());
    assert!(150 < noticed.len(), "{} fields: {noticed:#?}", noticed.len());
}
