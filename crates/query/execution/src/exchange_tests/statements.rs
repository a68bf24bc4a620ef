//! Tests of statements on a cluster: small queries, changes of rows, lost workers, EXPLAIN.

use std::collections::BTreeSet;

use binder::StatementPlan;
use datafusion_distributed::NetworkBoundaryExt as _;
use exchange::{DistributedPlanner, JoinDistribution, Purpose, RunLocation};
use types::Condition;

use super::distributed_correctness::tables;
use super::fixture::{Workers, check, in_one_process, on_workers, run_context};
use crate::sql_fixture::Sql;

const JOINED: &str = "select s.name, count(*), sum(b.id) from small s join big b on b.k = s.k group by 1";

#[tokio::test(flavor = "multi_thread")]
async fn a_small_query_runs_as_a_whole_on_the_worker_that_owns_most_of_it() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let distribution = workers.with_small_bytes(u64::MAX);
    for query in [
        JOINED,
        "select id, k from big order by k desc, id limit 7",
        "select count(*) from big where k < (select avg(k) from small)",
        "select t, count(distinct k), rank() over (order by count(*), t) from big group by t",
    ] {
        let expected = in_one_process(&sql, query).await;
        let (rows, spread) = on_workers(&sql, query, &distribution).await.unwrap();
        assert!(matches!(spread, RunLocation::SingleWorker(_)), "{query}: {spread:?}");
        assert_eq!(rows, expected, "{query}");
    }
    let one = Workers::start(&sql, 1);
    let (_, spread) = on_workers(&sql, JOINED, &one.distribution).await.unwrap();
    assert!(matches!(spread, RunLocation::SingleWorker(_)), "one worker divides nothing: {spread:?}");
    let error = on_workers(&sql, "select 1 / (k - 5) from big", &distribution).await.unwrap_err();
    assert_eq!(error.condition, Condition::DivisionByZero);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_names_the_worker_that_it_lost_and_runs_without_it() {
    let sql = tables().await;
    let expected = in_one_process(&sql, JOINED).await;
    for (small_bytes, lost) in [(0, vec![1]), (u64::MAX, vec![0]), (0, vec![0, 2])] {
        let workers = Workers::start(&sql, 4);
        lost.iter().for_each(|number| workers.cut_off(*number));
        let mut distribution = workers.with_small_bytes(small_bytes);
        let mut left = 4;
        for _ in &lost {
            let error = on_workers(&sql, JOINED, &distribution).await.expect_err("a worker is lost");
            assert_eq!(error.condition, Condition::IoError, "{error:?}");
            assert!(error.hint.is_some());
            let worker = run_context(&sql, &distribution).report_lost_worker(&error).expect("the error names it");
            distribution = distribution.without(worker);
            left -= 1;
        }
        let (rows, spread) = on_workers(&sql, JOINED, &distribution).await.expect("the others are there");
        assert_eq!(rows, expected);
        assert!(matches!(spread, RunLocation::SingleWorker(_)) || spread == RunLocation::Workers(left), "{spread:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_runs_as_a_whole_has_a_name_of_its_own() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 2);
    let distribution = workers.with_small_bytes(u64::MAX);
    let context = run_context(&sql, &distribution);
    let StatementPlan::Query(plan) = sql.plan(JOINED).expect("it is a query") else { panic!("{JOINED} is no query") };
    let planning = DistributedPlanner::new(&plan, context.resources(), &distribution, Purpose::Run);
    let mut names = BTreeSet::new();
    // One planner prepares a query and its scalar subqueries.
    for _ in 0..2 {
        let ready = planning.plan_stages().await.expect("it can be planned").expect("it runs on a worker");
        let exchange = ready.operators.children()[0];
        let exchange = exchange.as_network_boundary().expect("rows come from another process");
        names.insert(exchange.input_stage().query_id());
    }
    assert_eq!(names.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_change_rows_change_those_of_their_conditions() {
    let (sql, other) = (tables().await, tables().await);
    let workers = Workers::start(&sql, 3);
    for joins in [JoinDistribution::Shuffle, JoinDistribution::Broadcast] {
        let context = run_context(&sql, &workers.with_joins(joins));
        for change in [
            "delete from big where k in (select k from small where name < 'n3')",
            "update big b set t = 'x' where exists (select 1 from small s where s.k = b.k and s.k > 90)",
            "delete from big where not exists (select 1 from small s where s.k = big.k % 50) and k % 2 = 0",
            "insert into small select k + 1000, t from big where id % 3 = 0",
            "delete from big where false",
        ] {
            let changed = sql.run_with(change, &context).await.unwrap_or_else(|error| panic!("{change}: {error:?}"));
            assert_eq!(changed, other.run(change).await.unwrap(), "{change}");
            for table in ["select * from big", "select * from small"] {
                assert_eq!(
                    in_one_process(&sql, table).await,
                    in_one_process(&other, table).await,
                    "{table} after {change}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_of_stages_tasks_and_workers() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let shuffled = run_context(&sql, &workers.with_joins(JoinDistribution::Shuffle));
    let lines = sql.run_with(&format!("explain (analyze, costs off) {JOINED}"), &shuffled).await.unwrap();
    let text = lines.join("\n");
    for part in
        ["Shuffle (actual", "Gather (actual", "Tasks: 3", "worker-2:1", "Skew: ", "Exchanged: ", "Slowest Task: "]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.contains("Runs: on 3 workers"), "{text}");
    assert!(text.contains("Engine: on workers"), "{text}");
    let planned = sql.run_with(&format!("explain (costs off, summary on) {JOINED}"), &shuffled).await.unwrap();
    assert!(planned.iter().any(|line| line.contains("Stage: 1")), "{planned:#?}");
    let small = run_context(&sql, &workers.with_small_bytes(u64::MAX));
    let lines = sql.run_with(&format!("explain (analyze) {JOINED}"), &small).await.unwrap();
    assert!(lines.iter().any(|line| line.starts_with("Runs: as a whole on worker-")), "{lines:#?}");
    let here = sql.run_with("explain (analyze) select count(*) from big where random() < 2", &small).await.unwrap();
    assert!(here.iter().any(|line| line.starts_with("Runs: in the instance, because random()")), "{here:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subquery_is_not_run_to_be_explained() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 2);
    let context = run_context(&sql, &workers.distribution);
    let failing = "select count(*) from big where k = (select k from small)";
    let lines = sql.run_with(&format!("explain (summary on) {failing}"), &context).await.unwrap();
    assert!(
        lines.iter().any(|line| line.contains("its scalar subqueries must run before it can be distributed")),
        "{lines:#?}"
    );
    let query = "select count(*) from big where k < (select avg(k) from small)";
    check(&sql, query, &workers.distribution).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_any_width_are_grouped_on_workers() {
    let sql = Sql::new();
    sql.run("create table wide (id bigint, n numeric(30, 4), m numeric(30, 4))").await.expect("the table is new");
    for shard in 0..6_i64 {
        // In some shards all values fit in 64 bits.
        let more = if shard % 2 == 0 { "" } else { "1000000000000000000" };
        let row = |i: i64| format!("{i},{more}{}.5,{more}{}.25\n", i % 40, i % 7);
        sql.copy("wide", (shard * 500..shard * 500 + 500).map(row).collect::<String>().into()).await;
    }
    let workers = Workers::start(&sql, 3);
    for query in [
        "select n, count(*) from wide group by n",
        "select distinct n * 2, m from wide",
        "select n, m, sum(id), max(m) from wide group by n, m",
        "select count(distinct n), count(distinct m), sum(distinct m) from wide",
        "select m, count(distinct n) from wide group by m",
        "select n, m, count(*) from wide group by grouping sets ((n, m), (m), ())",
        "select n from wide where id % 2 = 0 except select m from wide",
        "select n, m from wide where id % 2 = 0 union select m, n from wide",
    ] {
        check(&sql, query, &workers.distribution).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_after_rows_were_given_has_its_own_error() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    for (query, condition) in [
        ("select b.id, 1 / (b.id - 20007) from big b join small s on b.k = s.k", Condition::DivisionByZero),
        (
            "select b.id, (b.id * 2 - 7000)::smallint from big b join small s on b.k = s.k",
            Condition::NumericValueOutOfRange,
        ),
    ] {
        let error = on_workers(&sql, query, &workers.distribution).await.expect_err(query);
        assert_eq!(error.condition, condition, "{query}: {error:?}");
    }
}
