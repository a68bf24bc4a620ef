//! Runs the queries of TPC-H and TPC-DS on workers, over little data in many shards.

use std::sync::Arc;

use bench::Suite;
use binder::StatementPlan;
use bytes::{Bytes, BytesMut};
use datafusion::execution::SessionStateBuilder;
use exchange::{DistributionContext, JoinDistribution, RunLocation, Worker};
use futures::TryStreamExt;
use operators::{Threading, plan_operators};
use tokio_util::sync::CancellationToken;

use super::fixture::{Workers, in_one_process, on_workers, run_context};
use crate::exchange_tests::codec::round_trip;
use crate::sql_fixture::Sql;

/// Minimum number of shards of a table; smaller tables have one per row.
const SHARDS: usize = 6;

/// Loads all tables of a suite, each in several shards.
async fn loaded(suite: Suite, scale: f64) -> Sql {
    distributed(suite, scale, &[]).await
}

/// Loads all tables of a suite, some of them with a distribution clause.
async fn distributed(suite: Suite, scale: f64, clauses: &[(&str, &str)]) -> Sql {
    let sql = Sql::new();
    for table in suite.create_table_sql().split(';').filter(|statement| !statement.trim().is_empty()) {
        sql.run(table).await.unwrap();
    }
    for (table, clause) in clauses {
        sql.run(&format!("alter table {table} set {clause}")).await.expect("it runs");
    }
    for table in suite.tables() {
        let parts: Vec<Bytes> = bench::generate::generate_csv(suite, table, scale, 2).try_collect().await.unwrap();
        let mut all = BytesMut::new();
        parts.iter().for_each(|part| all.extend_from_slice(part));
        let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
        for piece in lines.chunks(lines.len().div_ceil(SHARDS)) {
            sql.copy(table, piece.concat().into()).await;
        }
    }
    sql
}

fn query_numbers() -> impl Iterator<Item = (usize, &'static str)> {
    Suite::Tpch.queries().iter().copied().enumerate().map(|(at, query)| (at + 1, query))
}

#[tokio::test(flavor = "multi_thread")]
async fn tpch_gives_the_same_rows_on_workers_however_joins_meet() {
    let sql = loaded(Suite::Tpch, 0.01).await;
    let workers = Workers::start(&sql, 3);
    let mut left = Vec::new();
    for (number, query) in query_numbers() {
        let expected = in_one_process(&sql, query).await;
        for joins in [JoinDistribution::ByCost, JoinDistribution::Shuffle, JoinDistribution::Broadcast] {
            let about = format!("query {number} with {joins:?}");
            let ran = on_workers(&sql, query, &workers.with_joins(joins)).await;
            let (rows, spread) = ran.unwrap_or_else(|error| panic!("{about}: {error:?}"));
            if let RunLocation::Instance(reason) = spread {
                left.push(format!("{about}: {reason}"));
            }
            assert_eq!(rows, expected, "{about}");
        }
    }
    assert!(left.is_empty(), "{left:#?}");
    // Each worker has read its own shards.
    let read = |worker: &Worker| worker.cache_tiers().iter().flat_map(|tier| &tier.tables).count();
    assert!(workers.workers.iter().all(|worker| 0 < read(worker)));
}

/// Returns the rows that the tasks of a query exchanged, and the kilobytes, which include some overhead per stream.
async fn exchanged(sql: &Sql, query: &str, distribution: &DistributionContext) -> (u64, u64) {
    let lines = sql
        .run_with(&format!("explain (analyze, costs off) {query}"), &run_context(sql, distribution))
        .await
        .expect("it runs");
    let bytes = |line: &String| {
        let (_, bytes) = line.split_once("Exchanged: ")?;
        bytes.strip_suffix("kB").expect("kilobytes").parse::<u64>().ok()
    };
    let rows = |line: &String| {
        let (operator, rows) = line.split_once(" (actual rows=")?;
        let is_exchange = ["Shuffle", "Gather", "Broadcast"].iter().any(|name| operator.ends_with(name));
        is_exchange.then(|| rows.split(' ').next()?.parse::<u64>().ok()).flatten()
    };
    (lines.iter().filter_map(rows).sum(), lines.iter().filter_map(bytes).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn tpch_on_the_order_key_gives_the_same_rows_and_moves_fewer() {
    let clauses = [
        ("lineitem", "distribute on (l_orderkey)"),
        ("orders", "distribute on (o_orderkey)"),
        ("part", "distribute on (p_partkey)"),
        ("partsupp", "distribute on (ps_partkey)"),
        ("nation", "distribute replicate"),
        ("region", "distribute replicate"),
        ("supplier", "distribute replicate"),
    ];
    let sql = distributed(Suite::Tpch, 0.01, &clauses).await;
    let workers = Workers::start(&sql, 3);
    for (number, query) in query_numbers() {
        let expected = in_one_process(&sql, query).await;
        for joins in [JoinDistribution::ByCost, JoinDistribution::Shuffle] {
            let about = format!("query {number} with {joins:?}");
            let ran = on_workers(&sql, query, &workers.with_joins(joins)).await;
            let (rows, spread) = ran.unwrap_or_else(|error| panic!("{about}: {error:?}"));
            assert!(!matches!(spread, RunLocation::Instance(_)), "{about}: {spread:?}");
            assert_eq!(rows, expected, "{about}");
        }
    }
    let anywhere = loaded(Suite::Tpch, 0.01).await;
    let others = Workers::start(&anywhere, 3);
    let joined = "select o_orderpriority, count(*), sum(l_extendedprice) from orders join lineitem on o_orderkey = l_orderkey group by 1";
    for (query, part) in [(joined, 50), (Suite::Tpch.queries()[11], 5), (Suite::Tpch.queries()[17], 5)] {
        let (rows, bytes) = exchanged(&sql, query, &workers.distribution).await;
        let (rows_before, bytes_before) = exchanged(&anywhere, query, &others.distribution).await;
        assert!(rows * part < rows_before, "{rows} rows of {rows_before}: {query}");
        assert!(bytes < bytes_before, "{bytes} kB of {bytes_before}: {query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_no_program_runs_give_the_same_rows() {
    let mut sql = loaded(Suite::Tpch, 0.002).await;
    let workers = Workers::start(&sql, 2);
    sql.settings.set("kiln.engine", "off").unwrap();
    for (number, query) in query_numbers() {
        let expected = in_one_process(&sql, query).await;
        let ran = on_workers(&sql, query, &workers.distribution).await;
        let (rows, spread) = ran.unwrap_or_else(|error| panic!("query {number}: {error:?}"));
        assert_eq!(spread, RunLocation::Workers(2), "query {number}");
        assert_eq!(rows, expected, "query {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_all_queries_are_the_same_after_their_way() {
    for (suite, least) in [(Suite::Tpch, 22), (Suite::Tpcds, 60)] {
        let sql = Sql::new();
        for table in suite.create_table_sql().split(';').filter(|statement| !statement.trim().is_empty()) {
            sql.run(table).await.unwrap();
            let name = table.trim().strip_prefix("CREATE TABLE ").unwrap().split(' ').next().unwrap();
            let columns = table.lines().filter(|line| line.starts_with("    ")).count();
            sql.copy(name, format!("{}\n", ",".repeat(columns - 1)).into()).await;
        }
        let mut travelled = 0;
        for query in suite.queries() {
            let StatementPlan::Query(plan) = sql.plan(query).unwrap() else { panic!("{query} is no query") };
            let stop = CancellationToken::new();
            let Some(optimized) = plan.optimized_without_sharing(&stop).await.unwrap() else { continue };
            let mut state = SessionStateBuilder::new_from_existing(plan.state.as_ref().clone()).build();
            *state.config_mut() = state.config().clone().with_target_partitions(4);
            let plan = binder::QueryPlan { state: Arc::new(state), ..plan };
            let operators = plan_operators(&plan, &optimized, Threading::Multiple, &stop).await;
            let operators = operators.expect("it has operators");
            if !optimized.scalar_subqueries().unwrap().is_empty() || exchange::check_distributable(&operators).is_err()
            {
                continue;
            }
            round_trip(&sql, &operators);
            travelled += 1;
        }
        // Plans with a scalar subquery are sent after it was evaluated.
        assert!(least - 6 <= travelled, "{suite:?}: {travelled}");
    }
}
