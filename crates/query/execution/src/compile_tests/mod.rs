//! Tests of compiled plans: results with little memory, and which parts are compiled.

mod fallback_partitioning;
mod fragment_cache;
mod tpc;

use std::time::Duration;

use scheduler::ResourceConfig;
use types::{Clock, Condition, SystemClock};

use crate::fixtures::Warehouse;
use crate::sql_fixture::Sql;

/// Queries that collect many rows in groups, hash tables, exchanges, sorts and windows, some of them from operators
/// that are not compiled.
const MEMORY_INTENSIVE: [&str; 40] = [
    "select x, count(*) from a group by x order by x desc limit 3",
    "select x % 20000 as g, max(x::text), min(t) from a group by 1 order by 1 limit 3",
    "select count(*), sum(x), max(y), min(t) from a join b on x = y",
    "select count(*), sum(n) from (select x % 30000 as g, count(distinct t) as n from a group by 1) as s join b on g = y",
    "select n, count(*), sum(x) from (select x, row_number() over (partition by x % 5 order by t, x) as n from a) as s group by n order by n limit 3",
    "select count(*), sum(y) from (select x, t from a order by t, x limit 30000) as s join b on x = y",
    "select count(*), sum(y) from (select x from a order by x limit 30000) as s join b on x = y",
    "select count(*), sum(s.x) from (select x from a union all select y from b) as s join a as other on s.x = other.x",
    "with s as (select x, count(*) as n, max(t) as t from a group by x) select count(*), sum(p.n), max(q.t) from s as p join s as q on p.x = q.x + 1",
    // Joins of all kinds, by keys that are NULL or frequent, with and without further conditions.
    "select count(*), sum(a.x), sum(length(o.t)) from a left join a as o on a.x = o.x + 20000",
    "select count(*), count(y), sum(x) from b right join a on x = y - 30000 and y % 3 <> x % 2",
    "select count(*), count(x), count(y), min(t), max(t) from a full join b on x + 25000 = y",
    "select count(*), sum(x), max(t) from a where x in (select y * 2 from b) and exists (select 1 from b where y = x + 1 and y % 7 <> 3)",
    "select count(*), sum(x), max(t) from a where not exists (select 1 from b where y = x * 2)",
    "select count(*), sum(x) from a where x in (select y * 3 from b) or x % 5 = 1",
    "select count(*), sum(m), sum(n) from (select nullif(x % 4000, 7) as m, t from a) as s full join (select nullif(y % 3000, 7) * 3 as n from b where y < 9000) as r on m = n",
    "select count(*), min(l.t), max(r.t) from a as l join a as r on l.t = r.t and l.x <> r.x where l.x < 9000",
    "select count(*), sum(length(l.t || r.t)) from a as l join a as r on l.x = r.x join b on l.x = y join a as s on s.x = y where l.t < 'text 5'",
    // Aggregations of all kinds.
    "select x % 3 as g, t, count(*), grouping(x % 3, t) from a group by rollup (x % 3, t) order by 1, 2, 4 limit 5",
    "select sum(g), count(*), min(c) from (select x % 25000 as g, x % 3 as h, count(*) as c from a group by grouping sets ((1, 2), (1), (2), ())) as s",
    "select count(*), sum(v), max(d) from (select x % 20000 as g, var_samp(x) as v, min(t) as d from a group by 1) as s",
    "select count(*), sum(f) from (select t || x % 9000 as g, sum(x::float8) as f from a group by 1) as s",
    "select count(*), sum(n) from (select a.x, a.t, count(*) as n from a join b on a.x = b.y group by a.x, a.t having count(*) > 0) as s join b on s.x = b.y",
    "select count(*), sum(c), max(d) from (select x * 1000003 + n as g, t, count(*) as c, max(t) as d from a, generate_series(0, 2) as r(n) group by 1, 2) as s",
    "select count(*), sum(c), max(d) from (select x * 1000003 + n as g, t, count(*) as c, max(t) as d from a, generate_series(0, 2) as r(n) group by rollup (1, 2)) as s",
    // DISTINCT aggregates.
    "select x % 20000 as g, count(distinct t), sum(x), count(distinct x % 7) filter (where x % 2 = 0) from a group by 1 order by 1 limit 3",
    "select count(distinct x), count(distinct t), sum(x), avg(distinct x % 30000) from a",
    "select x % 500 as g, x % 3 as h, count(distinct t), sum(x) from a group by rollup (1, 2) order by 1, 2, 4 limit 5",
    "select count(*), min(d), count(v) from (select x % 20000 as g, stddev(x::float8) as d, var_pop((x % 5)::real)::int as v, bool_and(x % 2 = 0) as e from a group by 1) as s",
    // Types whose values are only carried, and types that are compared as numbers.
    "select c.id, c.b, c.s, c.l, c.r, o.t from c join a as o on o.x = c.id order by o.t, c.id",
    "select u, count(*), sum(r), min(id) from c join b on y = id group by u order by u desc limit 5",
    "select id, lag(l) over (order by id), first_value(b) over (partition by u order by id) from c order by id",
    // Sorts of all types, with and without limits, and queries over sorted rows.
    "select x, t from a order by t desc, x",
    "select nullif(x % 5, 2) as g, x::numeric(30, 4) / 7 as w, x % 2 = 0 as b, t || x as l from a order by 1 desc nulls last, 3, 2 desc, 4",
    "select count(*), sum(x), min(t) from (select x, t from a order by x % 1000, t, x limit 40000) as s",
    // Window functions over rows that are sorted, or grouped.
    "select x, t, rank() over w, sum(x) over w, lag(t, 2, 'none') over w, ntile(3) over w from a window w as (partition by x % 5000 order by t, x) order by x % 5000, t, x",
    "select count(*), sum(x * n), sum(m) from (select x, row_number() over (partition by t order by x desc) as n, max(x) over (partition by t) as m from a) as s",
    "select x, t, row_number() over w, sum(x) over w, lag(t) over w from a window w as (order by t desc, x) order by t desc, x",
    "select count(*), sum(r), max(f) from (select dense_rank() over (partition by x % 700 order by t) as r, first_value(t) over (partition by x % 700 order by t) as f from a join b on x = y) as s",
    "select count(*), sum(s), max(n) from (select sum(x) over (partition by x % 300 order by x range between 900 preceding and 300 following) as s, nth_value(t, 2) over (partition by x % 300 order by t groups between 1 preceding and current row) as n from a) as s",
];

async fn tables(memory_bytes: usize) -> Sql {
    let sql = Sql::on(Warehouse::with_config(ResourceConfig { memory_bytes, ..ResourceConfig::default() }));
    sql.run("create table a (x bigint, t text)").await.unwrap();
    sql.run("create table b (y bigint)").await.unwrap();
    sql.run("create table c (id bigint, r real, u uuid, b bytea, s interval, l int[])").await.unwrap();
    let values = "i, i / 8.0, lpad((i % 900)::text, 32, '0')::uuid, ('\\x' || repeat('0a', i % 5))::bytea, i * interval '1 second', array[i, null, i % 7]";
    sql.run(&format!("insert into c select {values} from generate_series(0, 4999) as g(i)")).await.unwrap();
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
    let (mut refused, mut spilled, mut sorted) = (0, 0, 0);
    let mut answers = Vec::new();
    for query in MEMORY_INTENSIVE {
        answers.push(plenty.run(query).await.unwrap());
    }
    for kilobytes in [1_500, 4_000, 12_000] {
        let sql = tables(kilobytes << 10).await;
        let runtime = sql.warehouse.execution.executor().runtime();
        let (pool, disk) = (&runtime.memory_pool, &runtime.disk_manager);
        for (query, expected) in MEMORY_INTENSIVE.iter().zip(&answers) {
            let answer = tokio::time::timeout(Duration::from_secs(60), sql.run(query)).await;
            match answer.unwrap_or_else(|_| panic!("{query} with {kilobytes} kB does not end")) {
                Ok(rows) => assert_eq!(rows, *expected, "{query} with {kilobytes} kB"),
                Err(error) => {
                    assert_eq!(error.condition, Condition::OutOfMemory, "{query} with {kilobytes} kB: {error}");
                    refused += 1;
                }
            }
            let ended = clock.monotonic();
            while (
                sql.warehouse.execution.executor().query_threads().unfinished_tasks(),
                pool.reserved(),
                disk.used_disk_space(),
            ) != (0, 0, 0)
            {
                let waited = clock.monotonic() - ended;
                assert!(waited < Duration::from_secs(60), "{query} with {kilobytes} kB left {pool:?}, {disk:?}");
                clock.sleep(Duration::from_millis(5)).await;
            }
            if let Ok(plan) = sql.run(&format!("explain (analyze) {query}")).await {
                spilled += usize::from(plan.iter().any(|line| line.contains("Spilled Parts")));
                sorted += usize::from(plan.iter().any(|line| line.contains("Spilled Runs")));
            }
        }
    }
    // Operators that are not compiled may fail with so little memory.
    assert!(
        20 < spilled && 8 < sorted && refused < 12,
        "{spilled} programs spilled, {sorted} sorted in files, {refused} failed"
    );
}

/// Queries with a LIMIT of this many rows. The row with `i = 7000` fails, either before or after the limit or among the
/// rows of an inner LIMIT.
const LIMITED_ROWS: usize = 20_000;
const LIMITED: [&str; 5] = [
    "select a.i from v a join w on a.i = k where 10 / (a.i - 7000) > -100 limit 20000",
    "select 10 / (a.i - 7000) from v a join w on a.i = k limit 20000",
    "select 10 / (i - 7000) from (select i from v union all select i + 1000000 from v) as u join w on i % 300000 = k limit 20000",
    "select i from (select i from v limit 30000) as s join w on i = k where 10 / (i - 7000) > -100 limit 20000",
    "select i from (select i, sum(i) as s from v group by i) as g where 10 / (s - 7000) > -100 limit 20000",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_gives_all_its_rows_or_fails() {
    let sql = Sql::new();
    sql.run("create table v (i bigint)").await.expect("it is new");
    sql.run("create table w (k bigint)").await.expect("it is new");
    for table in ["v", "w"] {
        for part in 0..6 {
            let (first, last) = (part * 50_000, part * 50_000 + 49_999);
            sql.run(&format!("insert into {table} select g from generate_series({first}, {last}) as s(g)"))
                .await
                .expect("they are numbers");
        }
    }
    let mut answered = 0;
    for query in LIMITED {
        for _ in 0..4 {
            match sql.run(query).await {
                Ok(rows) => {
                    assert_eq!(rows.len(), LIMITED_ROWS, "{query}");
                    answered += 1;
                }
                Err(error) => assert_eq!(error.condition, Condition::DivisionByZero, "{query}: {error}"),
            }
        }
    }
    println!("{answered} of 20 were answered");
    match sql.run("select count(*) + sum(10 / (i - 7000)) * 0 from (select i from v limit 250000) as s").await {
        Ok(rows) => assert_eq!(rows, ["250000"]),
        Err(error) => assert_eq!(error.condition, Condition::DivisionByZero, "{error}"),
    }
    for _ in 0..4 {
        let query = "select i, 10 / (s - 7000) from (select i, sum(i) as s from (select i from v limit 250000) as l group by i) as g";
        match sql.run(query).await {
            Ok(rows) => assert_eq!(rows.len(), 250_000),
            Err(error) => assert_eq!(error.condition, Condition::DivisionByZero, "{error}"),
        }
    }
    // The rows within the limit include failing ones.
    let query = "select sum(10 / (i - 7000)) from (select i from v union all select 7000 from v limit 500000) as s";
    let error = sql.run(query).await.expect_err("some of these rows are among those of the limit");
    assert_eq!(error.condition, Condition::DivisionByZero, "{error}");
}

/// Plans that are compiled completely.
const FULLY_COMPILED: [&str; 16] = [
    "select x, t from a order by t desc, x",
    "select x, t from a order by t desc, x limit 10 offset 5",
    "select count(*) from (select x from a limit 100) as s join b on x = y",
    "select x from a join b on x = y order by x limit 3",
    "select n, count(*) from (select x % 7 as n from a union all select y % 5 from b) as s group by n order by n",
    "(select x from a union all select y from b) order by 1 limit 3",
    "select x, rank() over (partition by t order by x desc), sum(x) over (partition by t) from a order by x limit 4",
    "select x from (select x, rank() over (partition by t order by x) as r from a) as s where r = 2 order by x",
    "select t, count(distinct x), sum(x) from a group by t order by t",
    "select count(distinct x), count(distinct t) filter (where x > 5), avg(x) from a",
    "select t, x % 3, count(*) from a group by grouping sets ((t), (x % 3)) order by 1, 2",
    "select id, b, s, l from c order by u desc, r limit 7",
    "select u, l, s, t from c left join a on x = id where r > 3 and u <> '00000000-0000-0000-0000-000000000005' order by id",
    "select u, r, max(id), bool_or(id > 5), stddev(r) from c group by u, r order by u, r",
    "select t, lag(x) over (order by x), max(x) over (order by x rows 2 preceding), avg(x) over () from a",
    "select sum(x) filter (where t > 'text 3') over w, stddev(x) over w, nth_value(t, 3) over w, sum(x::float8) over (order by x rows 2 preceding) from a window w as (order by x range between 5 preceding and 3 following)",
];

#[tokio::test(flavor = "multi_thread")]
async fn sorts_limits_unions_and_windows_are_of_one_program() {
    let sql = tables(1 << 30).await;
    for query in FULLY_COMPILED {
        let plan = sql.run(&format!("explain (analyze) {query}")).await.unwrap();
        let ran = plan.iter().filter(|line| line.contains("Engine: on")).count();
        let before = plan.iter().take_while(|line| !line.contains("Engine: on"));
        let outside = before.filter(|line| line.contains("->")).count();
        assert_eq!((ran, outside), (1, 0), "{query}:\n{}", plan.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_workers_put_their_groups_together_side_by_side() {
    let mut sql = tables(1 << 30).await;
    // There are as many outer groups as inner ones, and each worker has a part of them.
    let groups = "select x + 100000 * n as x, t, count(*) as c from a, generate_series(0, 1) as g(n) group by 1, 2";
    let query = format!(
        "select count(*), sum(g), sum(c), min(l), max(l) from (select x * 3 as g, max(t) as l, sum(c) as c from ({groups}) as s group by 1) as u"
    );
    let mut answers = Vec::new();
    for workers in ["1", "3", "7"] {
        sql.settings.set("kiln.target_partitions", workers).unwrap();
        answers.push(sql.run(&query).await.unwrap());
    }
    assert_eq!(answers[0], ["100000|22499850000|100000|text 0|text 99"]);
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

/// Aggregations with almost as many groups as rows, so that workers flush them to radix partitions: by sparse integers,
/// texts and NULLs, with grouping sets and with DISTINCT.
const MANY_GROUPS: [&str; 4] = [
    "select x * 1000003 + n as g, t as u, count(*) as c, sum(x) as s, max(t) as m from a, generate_series(0, 3) as r(n) group by 1, 2",
    "select nullif(x % 40000, 7) * 1000003 + n as g, nullif(t, 'text 5') as u, count(*) filter (where x % 2 = 0) as c, min(x) as s, min(t) as m from a, generate_series(0, 3) as r(n) group by 1, 2",
    "select x * 1000003 as g, t || n as u, count(*) as c, sum(x) as s, max(t) as m from a, generate_series(0, 3) as r(n) group by rollup (1, 2)",
    "select x % 30000 * 1000003 as g, n::text as u, count(distinct x * 7000003) as c, sum(x) as s, max(t) as m from a, generate_series(0, 5) as r(n) group by grouping sets ((1, 2), (2))",
];

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_are_nearly_as_many_as_rows_are_those_of_operators() {
    let mut sql = tables(1 << 30).await;
    for query in MANY_GROUPS {
        let query = format!(
            "select count(*), count(g), count(u), sum(g::numeric), sum(c), sum(s), min(u), max(u), min(m), max(m) from ({query}) as r"
        );
        sql.settings.set("kiln.engine", "off").unwrap();
        let expected = sql.run(&query).await.unwrap();
        sql.settings.set("kiln.engine", "on").unwrap();
        for workers in ["1", "2", "7"] {
            sql.settings.set("kiln.target_partitions", workers).unwrap();
            assert_eq!(sql.run(&query).await.unwrap(), expected, "{query} by {workers} workers");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_no_program_runs_is_found_once() {
    let sql = Sql::new();
    sql.run("create table t (a int)").await.expect("the tables are new");
    sql.run("create table u (k int)").await.expect("the tables are new");
    sql.run("insert into t values (1), (2), (3), (4)").await.expect("the tables are new");
    sql.run("insert into u values (2), (4)").await.expect("the tables are new");
    // Each level is a join below an expression that is not compiled.
    let (open, close) = ("case when ".repeat(20), " then a in (select k from u) else a < 3 end".repeat(20));
    let rows = sql
        .run(&format!("select a from t where {open}a > 1{close} order by a"))
        .await
        .expect("operators run what programs do not");
    assert_eq!(rows, ["2", "4"]);
}
