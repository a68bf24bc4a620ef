//! Tests of pitfalls of running one plan in several processes.

use exchange::{JoinDistribution, LocalReason, RunLocation};
use types::Condition;

use super::fixture::{Workers, check, in_one_process, on_workers, refusal, run_context};
use crate::sql_fixture::Sql;

/// Creates `big` with eight shards and `small` with three.
pub(super) async fn tables() -> Sql {
    let sql = Sql::new();
    sql.run("create table big (id bigint, k bigint, t text, at timestamptz)").await.unwrap();
    sql.run("create table small (k bigint, name text)").await.unwrap();
    for shard in 0..8 {
        let row = |i: i64| {
            // Hours around a change to daylight saving time in Europe.
            let (day, hour) = (i / 24 % 28 + 1, i % 24);
            format!("{i},{},t{},2024-03-{day:02} {hour:02}:00:00+00\n", i % 97, i % 13)
        };
        sql.copy("big", (shard * 3_000..shard * 3_000 + 3_000).map(row).collect::<String>().into()).await;
    }
    for shard in 0..3 {
        let row = |i: i64| format!("{i},n{i}\n");
        sql.copy("small", (shard * 40..shard * 40 + 40).map(row).collect::<String>().into()).await;
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn all_workers_join_with_the_same_rows_of_a_limit() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 4);
    let distribution = workers.with_joins(JoinDistribution::Broadcast);
    // The limit may choose any keys, but five of them; each has matches in every shard of `big`.
    let query = "select count(distinct s.k) from (select k from small where k < 97 limit 5) s join big b on b.k = s.k";
    for _ in 0..5 {
        let (rows, spread) = on_workers(&sql, query, &distribution).await.unwrap();
        assert!(matches!(spread, RunLocation::Workers(4)), "{spread:?}");
        assert_eq!(rows, ["5"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_know_the_sessions_zone_and_date_order() {
    let mut sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let query = "select date_trunc('day', at)::text, count(*), min(cast('01/02/2024' as date))
                 from big where extract(hour from at) < 5 group by 1";
    let mut seen = Vec::new();
    for (zone, style) in [("UTC", "ISO, MDY"), ("America/New_York", "ISO, DMY"), ("Europe/Berlin", "ISO, MDY")] {
        sql.settings.set("timezone", zone).unwrap();
        sql.settings.set("datestyle", style).unwrap();
        let rows = check(&sql, query, &workers.distribution).await;
        assert!(!seen.contains(&rows), "{zone} makes no difference");
        seen.push(rows);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_one_task_learns_leaves_the_rows_of_others_alone() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 4);
    // The build side is filtered, so that the join pushes a runtime filter into the probe side's scan. One worker's
    // part of the build side is not all of it.
    for joins in [JoinDistribution::Shuffle, JoinDistribution::Broadcast] {
        let distribution = workers.with_joins(joins);
        check(&sql, "select b.id from small s join big b on b.k = s.k where s.name < 'n3'", &distribution).await;
        check(&sql, "select count(*), min(id) from big where k in (select k from small where k > 90)", &distribution)
            .await;
        check(&sql, "select id, k from big order by k desc, id limit 7", &distribution).await;
        check(&sql, "select s.k, b.id from small s left join big b on b.id = s.k * 1000", &distribution).await;
        // If all rows of the subquery go to one reader, the plan is not divided.
        let query = "select k from small where k not in (select k from big where k < 50)";
        let (rows, spread) = on_workers(&sql, query, &distribution).await.unwrap();
        assert!(!matches!(spread, RunLocation::Instance(_)), "{spread:?}");
        assert_eq!(rows, in_one_process(&sql, query).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_the_session_is_computed_by_the_instance() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 2);
    let distribution = &workers.distribution;
    let random = refusal(&sql, "select count(*) from big where random() < 2", distribution).await;
    assert_eq!(random, LocalReason::Function { function: "random".to_owned() });
    let once = "with s as materialized (select k, count(*) as n from big group by k)
                select a.k from s a join s b on a.k = b.n % 97";
    assert_eq!(refusal(&sql, once, distribution).await, LocalReason::SharedRows);
    let values = refusal(&sql, "select count(*) from (values (1), (2)) as v(i)", distribution).await;
    assert!(matches!(values, LocalReason::Operator { .. } | LocalReason::NothingStored), "{values:?}");
    let nothing = Workers::start(&sql, 0);
    assert_eq!(refusal(&sql, "select count(*) from big", &nothing.distribution).await, LocalReason::NoWorkers);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_of_a_query_compute_it_each_for_itself() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let twice = "with s as (select k, count(*) as n from big group by k)
                 select a.k, b.n from s a join s b on a.k = b.k where a.n < (select avg(n) + 1 from s)";
    check(&sql, twice, &workers.distribution).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unions_windows_and_sorts_are_of_all_rows() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    for query in [
        "select k, 1.5 as n from big union all select k, 2 from small",
        "select k, sum(n) from (select k, 1 as n from big union all select k, null from small) u group by k",
        "select k from big intersect select k from small",
        "select k from small except select k from big",
        "select * from (select id, rank() over (partition by k order by id desc) as r from big) s where r <= 2",
        "select id, sum(id) over (order by id) from big order by id limit 10 offset 20000",
        "select k, t, count(*), grouping(k, t) from big group by rollup (k, t)",
        "select count(distinct t), avg(id), stddev(id), string_agg(distinct t, ',' order by t) from big",
        "select k, generate_series(1, k) from big where k < 9",
        "select max(id) from big where id % 7 = 8",
        "select distinct on (k) k, id from big order by k, id desc",
    ] {
        check(&sql, query, &workers.distribution).await;
    }
    // A sort key that is constant within each input of the union, but differs between them.
    let keyed = "select * from (select k, 'b' as n, count(*) from big group by k union all select k, 'a', max(id) from big group by k) u
                 order by k, n limit 30";
    let (rows, _) = on_workers(&sql, keyed, &workers.distribution).await.unwrap();
    assert_eq!(rows, in_one_process(&sql, keyed).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_whose_rows_are_parted_by_what_is_the_same_in_all_is_no_ones_stage() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let query = "select k, n, rank() over (partition by k, t order by n desc), avg(n) over (partition by k, t)
                 from (select k, t, id % 7 as n, count(*) from big where t = 't3' group by k, t, id % 7) s";
    let (rows, spread) = on_workers(&sql, query, &workers.distribution).await.unwrap();
    assert!(!matches!(spread, RunLocation::Instance(_)), "{spread:?}");
    assert_eq!(rows, in_one_process(&sql, query).await);
    let appended = "select id from big where k = 1 union all select k from small";
    let (rows, spread) = on_workers(&sql, appended, &workers.with_small_bytes(u64::MAX)).await.unwrap();
    assert!(matches!(spread, RunLocation::SingleWorker(_)), "{spread:?}");
    assert_eq!(rows, in_one_process(&sql, appended).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_and_fresh_rows_are_those_of_the_snapshot() {
    let sql = tables().await;
    sql.run("delete from big where id % 3 = 0").await.unwrap();
    sql.run("create table fresh (k bigint primary key, name text) with (storage = row)").await.unwrap();
    sql.run("insert into fresh select i, 'f' || i from generate_series(1, 300) as g(i)").await.unwrap();
    let workers = Workers::start(&sql, 3);
    check(&sql, "select k, count(*), sum(id) from big group by k", &workers.distribution).await;
    let rows = check(
        &sql,
        "select f.name, count(*) from big b join fresh f on f.k = b.k where f.k < 60 group by 1",
        &workers.distribution,
    );
    assert_eq!(rows.await.len(), 59);
    sql.run("insert into fresh select i, repeat('f', 600) from generate_series(1001, 9000) as g(i)").await.unwrap();
    let query = "select count(*) from big b join fresh f on f.k = b.k";
    let reason = refusal(&sql, query, &workers.distribution).await;
    assert_eq!(reason, LocalReason::UnflushedRows { table: "fresh".to_owned() });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_worker_is_the_one_that_the_instance_has() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let error = on_workers(&sql, "select sum(1 / (k - 5)) from big", &workers.distribution).await.unwrap_err();
    assert_eq!(error.condition, Condition::DivisionByZero, "{error:?}");
    let many = "select count(*) from big where k = (select k from small)";
    let error = on_workers(&sql, many, &workers.distribution).await.unwrap_err();
    assert_eq!(error.condition, Condition::CardinalityViolation, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_has_the_querys_memory_and_no_more() {
    let mut sql = tables().await;
    let workers = Workers::start(&sql, 2);
    sql.settings.set("kiln.query_memory", "64kB").unwrap();
    let query = "select t, array_agg(id) from big group by t";
    let error = on_workers(&sql, query, &workers.distribution).await.unwrap_err();
    assert_eq!(error.condition, Condition::OutOfMemory, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_below_groups_is_read_by_the_keys_of_the_other_side() {
    let sql = tables().await;
    let workers = Workers::start(&sql, 3);
    let groups = "(select k, count(*) as number, max(t) as most from big group by k) as g";
    for query in [
        format!("select s.name, g.number, g.most from small s join {groups} on g.k = s.k where s.name < 'n11'"),
        format!("select s.name, g.number from small s left join {groups} on g.k = s.k where s.name < 'n11'"),
        "select s.name from small s where s.name < 'n11' and exists (select 1 from big b where b.k = s.k and b.id > 9)".to_owned(),
        "select s.name from small s where s.name < 'n11' and not exists (select 1 from big b where b.k = s.k and b.id % 5 = 1)".to_owned(),
        format!("select g.number from {groups} left join small s on g.k = s.k and s.name < 'n11' where s.name is null"),
        format!("select s.name, g.number from small s join {groups} on g.k = s.k where s.name < 'a'"),
        "select count(*), sum(b.id), sum(c.id) from small s join big b on b.k = s.k join big c on c.k = b.k and c.id % 7 = 0 where s.name < 'n11'".to_owned(),
        "select count(*), count(c.id) from small s join big b on b.k = s.k left join big c on c.k = b.k and c.id % 7 = 0 where s.name < 'n11'".to_owned(),
        "select count(*), count(c.id) from small s join big b on b.k = s.k right join big c on c.k = b.k and s.name < 'n11'".to_owned(),
    ] {
        check(&sql, &query, &workers.distribution).await;
    }
    let query = format!("select s.name, g.number from small s join {groups} on g.k = s.k where s.name < 'n11'");
    let lines =
        sql.run_with(&format!("explain (analyze) {query}"), &run_context(&sql, &workers.distribution)).await.unwrap();
    assert!(lines.iter().any(|line| line.contains("has_key(k)")), "{lines:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_below_not_in_is_seen_whatever_keys_are_asked_for() {
    let sql = tables().await;
    sql.copy("big", "100000,,none,2024-03-01 00:00:00+00\n".into()).await;
    let workers = Workers::start(&sql, 3);
    let chosen = "select count(*) from small s where s.name < 'n11' and s.k";
    let (rows, _) = on_workers(&sql, &format!("{chosen} not in (select k from big)"), &workers.distribution)
        .await
        .expect("it runs");
    assert_eq!(rows, ["0"]);
    let few = format!("{chosen} not in (select k from big where id < 100000)");
    let (rows, _) = on_workers(&sql, &few, &workers.distribution).await.expect("it runs");
    assert_eq!(rows, in_one_process(&sql, &few).await);
    assert_ne!(rows, ["0"]);
}
