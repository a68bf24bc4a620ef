//! Lists which parts of TPC-H and TPC-DS queries are not compiled, and which expressions are evaluated over Arrow
//! arrays.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binder::StatementPlan;
use compile::FragmentExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use operators::SharedScanExec;

use crate::fixtures::context;
use crate::sql_fixture::Sql;

/// File of the parts of TPC-DS that are not compiled: one line per query and operator or expression. Lines may only be
/// removed.
const UNCOMPILED: &str = "src/compile_tests/tpcds_left.txt";

/// Creates the tables of a suite with some rows, so that no plan is simplified because a table is empty.
async fn tables(suite: &str) -> Sql {
    let sql = Sql::new();
    let schema = std::fs::read_to_string(bench(&format!("schema/{suite}.sql"))).unwrap();
    for table in schema.split(';').filter(|statement| !statement.trim().is_empty()) {
        sql.run(table).await.unwrap();
        let columns = table.lines().filter_map(|line| line.strip_prefix("    "));
        let values = columns.filter_map(|column| value(column.split_whitespace().nth(1)?));
        let name = table.trim().strip_prefix("CREATE TABLE ").unwrap().split(' ').next().unwrap();
        let values = values.collect::<Vec<_>>().join(", ");
        let rows = format!("insert into {name} select {values} from generate_series(1, 200) as g(i)");
        sql.run(&rows).await.unwrap_or_else(|error| panic!("{rows}: {error}"));
    }
    sql
}

/// Returns an expression for a value of a column type; `None` if the word is not a type.
fn value(column_type: &str) -> Option<&'static str> {
    Some(match column_type.trim_end_matches(',').split('(').next()? {
        "integer" | "bigint" => "i",
        "numeric" => "i % 9",
        "text" => "'t' || i % 50",
        "date" => "date '1998-01-01' + i * 7",
        _ => return None,
    })
}

fn bench(path: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../bench")).join(path)
}

/// Returns the number of queries of a suite, and what is not compiled.
async fn uncompiled(suite: &str) -> (usize, BTreeSet<String>) {
    let sql = tables(suite).await;
    let (mut count, mut left) = (0, BTreeSet::new());
    for entry in std::fs::read_dir(bench(&format!("queries/{suite}"))).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let query = std::fs::read_to_string(&path).unwrap();
        let planned = sql.plan(&query).unwrap_or_else(|error| panic!("{name}: {error}"));
        let StatementPlan::Query(plan) = planned else { panic!("{name} is no query") };
        let (about, task) = (context(), context().task_context(&plan.state));
        let prepared = executor::prepare_local(&plan, None, &about, task, None).await;
        let covered = prepared.unwrap_or_else(|error| panic!("{name}: {error}")).operators;
        collect(&covered, name, &mut left);
        count += 1;
    }
    (count, left)
}

fn collect(operator: &Arc<dyn ExecutionPlan>, query: &str, left: &mut BTreeSet<String>) {
    if let Some(fragment) = operator.downcast_ref::<FragmentExec>() {
        left.extend(
            fragment.arrow_expressions().into_iter().map(|(_, sql)| format!("{query} computes over arrays: {sql}")),
        );
        return fragment.operator_inputs().for_each(|(_, input)| collect(input, query, left));
    }
    if let Some(shared) = operator.downcast_ref::<SharedScanExec>() {
        return collect(shared.rows().operators(), query, left);
    }
    if let Some(with) = operator.downcast_ref::<ScalarSubqueryExec>() {
        with.subqueries().iter().for_each(|subquery| collect(&subquery.plan, query, left));
        return collect(with.input(), query, left);
    }
    // It passes rows on unchanged, and only yields to other tasks.
    if !operator.is::<CooperativeExec>() {
        left.insert(format!("{query} leaves to operators: {}", operator.name()));
    }
    operator.children().into_iter().for_each(|child| collect(child, query, left));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_run_all_of_tpch() {
    let (count, left) = uncompiled("tpch").await;
    assert_eq!(count, 22);
    // A scalar subquery's value is an array of one row; a dynamic filter that no join fills remains true.
    let known = ["over arrays: (scalar subquery)", "over arrays: DynamicFilter [ empty ]"];
    let more: Vec<&String> = left.iter().filter(|line| !known.iter().any(|known| line.ends_with(known))).collect();
    assert!(more.is_empty(), "{more:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn little_of_tpcds_is_left_to_operators() {
    let (count, left) = uncompiled("tpcds").await;
    assert_eq!(count, 99);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(UNCOMPILED);
    if std::env::var_os("KILN_WRITE_GOLDEN").is_some() {
        let lines: String = left.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(&path, lines).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(left.iter().map(String::as_str).collect::<Vec<_>>(), known.lines().collect::<Vec<_>>());
}
