use std::time::Duration;

use types::{Clock, Condition, SystemClock};

use crate::Config;
use crate::fixtures::Warehouse;
use crate::sql_fixture::Sql;

/// What collects much: groups and tables, some of them of what operators below have made, with exchanges, sorts and windows.
const HUNGRY: [&str; 30] = [
    "select x, count(*) from a group by x order by x desc limit 3",
    "select x % 20000 as g, max(x::text), min(t) from a group by 1 order by 1 limit 3",
    "select count(*), sum(x), max(y), min(t) from a join b on x = y",
    "select count(*), sum(n) from (select x % 30000 as g, count(distinct t) as n from a group by 1) as s join b on g = y",
    "select n, count(*), sum(x) from (select x, row_number() over (partition by x % 5 order by t, x) as n from a) as s group by n order by n limit 3",
    "select count(*), sum(y) from (select x, t from a order by t, x limit 30000) as s join b on x = y",
    "select count(*), sum(y) from (select x from a order by x limit 30000) as s join b on x = y",
    "select count(*), sum(s.x) from (select x from a union all select y from b) as s join a as other on s.x = other.x",
    "with s as (select x, count(*) as n, max(t) as t from a group by x) select count(*), sum(p.n), max(q.t) from s as p join s as q on p.x = q.x + 1",
    // Joins of all kinds, by keys that are NULL or come often, with conditions besides.
    "select count(*), sum(a.x), sum(length(o.t)) from a left join a as o on a.x = o.x + 20000",
    "select count(*), count(y), sum(x) from b right join a on x = y - 30000 and y % 3 <> x % 2",
    "select count(*), count(x), count(y), min(t), max(t) from a full join b on x + 25000 = y",
    "select count(*), sum(x), max(t) from a where x in (select y * 2 from b) and exists (select 1 from b where y = x + 1 and y % 7 <> 3)",
    "select count(*), sum(x), max(t) from a where not exists (select 1 from b where y = x * 2)",
    "select count(*), sum(x) from a where x in (select y * 3 from b) or x % 5 = 1",
    "select count(*), sum(m), sum(n) from (select nullif(x % 4000, 7) as m, t from a) as s full join (select nullif(y % 3000, 7) * 3 as n from b where y < 9000) as r on m = n",
    "select count(*), min(l.t), max(r.t) from a as l join a as r on l.t = r.t and l.x <> r.x where l.x < 9000",
    "select count(*), sum(length(l.t || r.t)) from a as l join a as r on l.x = r.x join b on l.x = y join a as s on s.x = y where l.t < 'text 5'",
    // Groups of all kinds.
    "select x % 3 as g, t, count(*), grouping(x % 3, t) from a group by rollup (x % 3, t) order by 1, 2, 4 limit 5",
    "select sum(g), count(*), min(c) from (select x % 25000 as g, x % 3 as h, count(*) as c from a group by grouping sets ((1, 2), (1), (2), ())) as s",
    "select count(*), sum(v), max(d) from (select x % 20000 as g, var_samp(x) as v, min(t) as d from a group by 1) as s",
    "select count(*), sum(f) from (select t || x % 9000 as g, sum(x::float8) as f from a group by 1) as s",
    "select count(*), sum(n) from (select a.x, a.t, count(*) as n from a join b on a.x = b.y group by a.x, a.t having count(*) > 0) as s join b on s.x = b.y",
    // Sorts, of all types and with limits, and what is read of them.
    "select x, t from a order by t desc, x",
    "select nullif(x % 5, 2) as g, x::numeric(30, 4) / 7 as w, x % 2 = 0 as b, t || x as l from a order by 1 desc nulls last, 3, 2 desc, 4",
    "select count(*), sum(x), min(t) from (select x, t from a order by x % 1000, t, x limit 40000) as s",
    // Windows, whose rows come in order, or are grouped.
    "select x, t, rank() over w, sum(x) over w, lag(t, 2, 'none') over w, ntile(3) over w from a window w as (partition by x % 5000 order by t, x) order by x % 5000, t, x",
    "select count(*), sum(x * n), sum(m) from (select x, row_number() over (partition by t order by x desc) as n, max(x) over (partition by t) as m from a) as s",
    "select x, t, row_number() over w, sum(x) over w, lag(t) over w from a window w as (order by t desc, x) order by t desc, x",
    "select count(*), sum(r), max(f) from (select dense_rank() over (partition by x % 700 order by t) as r, first_value(t) over (partition by x % 700 order by t) as f from a join b on x = y) as s",
];

async fn tables(memory_bytes: usize) -> Sql {
    let sql = Sql::on(Warehouse::with(Config { memory_bytes, ..Config::default() }));
    sql.run("create table a (x bigint, t text)").await.unwrap();
    sql.run("create table b (y bigint)").await.unwrap();
    for start in (0..50_000).step_by(10_000) {
        let series = format!("generate_series({start}, {})", start + 9_999);
        sql.run(&format!("insert into a select i, 'text ' || i % 777 from {series} as g(i)")).await.unwrap();
        sql.run(&format!("insert into b select i from {series} as g(i)")).await.unwrap();
    }
    sql
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_with_little_memory_spill_and_leave_nothing_behind() {
    let plenty = tables(1 << 30).await;
    let clock = SystemClock::new();
    let (mut left, mut refused, mut spilled, mut sorted) = (0, 0, 0, 0);
    let mut answers = Vec::new();
    for query in HUNGRY {
        answers.push(plenty.run(query).await.unwrap());
    }
    for kilobytes in [1_500, 4_000, 12_000] {
        let sql = tables(kilobytes << 10).await;
        let runtime = sql.warehouse.execution.runtime();
        let (pool, disk) = (&runtime.memory_pool, &runtime.disk_manager);
        for (query, expected) in HUNGRY.iter().zip(&answers) {
            let answer = tokio::time::timeout(Duration::from_secs(60), sql.run(query)).await;
            match answer.unwrap_or_else(|_| panic!("{query} with {kilobytes} kB does not end")) {
                Ok(rows) => assert_eq!(rows, *expected, "{query} with {kilobytes} kB"),
                Err(error) => {
                    assert_eq!(error.condition, Condition::OutOfMemory, "{query} with {kilobytes} kB: {error}");
                    refused += 1;
                }
            }
            let ended = clock.monotonic();
            while (sql.warehouse.execution.threads.alive(), pool.reserved(), disk.used_disk_space()) != (0, 0, 0) {
                let waited = clock.monotonic() - ended;
                assert!(waited < Duration::from_secs(5), "{query} with {kilobytes} kB left {pool:?}, {disk:?}");
                clock.sleep(Duration::from_millis(5)).await;
            }
            if let Ok(plan) = sql.run(&format!("explain (analyze) {query}")).await {
                left += usize::from(plan.iter().any(|line| line.contains("left to operators")));
                spilled += usize::from(plan.iter().any(|line| line.contains("Spilled Parts")));
                sorted += usize::from(plan.iter().any(|line| line.contains("Spilled Runs")));
            }
        }
    }
    // Operators below have their own needs.
    assert!(
        20 < spilled && 8 < sorted && left < 4 && refused < 12,
        "{spilled} programs spilled, {sorted} sorted in files, {left} did not do, {refused} failed"
    );
}

/// Plans of which no operator is left outside.
const WHOLE: [&str; 9] = [
    "select x, t from a order by t desc, x",
    "select x, t from a order by t desc, x limit 10 offset 5",
    "select count(*) from (select x from a limit 100) as s join b on x = y",
    "select x from a join b on x = y order by x limit 3",
    "select n, count(*) from (select x % 7 as n from a union all select y % 5 from b) as s group by n order by n",
    "(select x from a union all select y from b) order by 1 limit 3",
    "select x, rank() over (partition by t order by x desc), sum(x) over (partition by t) from a order by x limit 4",
    "select x from (select x, rank() over (partition by t order by x) as r from a) as s where r = 2 order by x",
    "select t, lag(x) over (order by x), max(x) over (order by x rows 2 preceding), avg(x) over () from a",
];

#[tokio::test(flavor = "multi_thread")]
async fn sorts_limits_unions_and_windows_are_of_one_program() {
    let sql = tables(1 << 30).await;
    for query in WHOLE {
        let plan = sql.run(&format!("explain (analyze) {query}")).await.unwrap();
        let ran = plan.iter().filter(|line| line.contains("Engine: on")).count();
        let before = plan.iter().take_while(|line| !line.contains("Engine: on"));
        let outside = before.filter(|line| line.contains("->")).count();
        assert_eq!((ran, outside), (1, 0), "{query}:\n{}", plan.join("\n"));
    }
}
