//! Queries of every operator, expression, aggregate and window function that workers run, with every modifier, over
//! flushed rows.

use crate::sql_fixture::Sql;

const COLUMNS: &str = "a bigint, b text, c numeric(9,2), at timestamptz, i interval, f float8, j jsonb, o json, h char(5), d date, \
                       y boolean, k int, l int[]";

/// Creates a table with NULLs and deleted rows in three shards, and a small one.
pub(super) async fn tables() -> Sql {
    let sql = Sql::new();
    sql.run(&format!("create table t ({COLUMNS})")).await.unwrap();
    sql.run("create table u (a bigint, w text, h char(7))").await.unwrap();
    for shard in 0..3_i64 {
        let row = |i: i64| {
            let b = if i % 9 == 4 { String::new() } else { format!("b{}", i % 11) };
            let f = if i % 8 == 5 { String::new() } else { format!("{}.5", i * 7 % 23) };
            let (h, y) = (["ab", "abc", "x"][(i % 3) as usize], i % 4 < 2);
            let (day, hours) = (1 + i % 28, i % 24);
            format!(
                "{i},{b},{}.25,2024-03-{day:02} {hours:02}:30:00+00,{} hours,{f},\"{{\"\"z\"\":{i},\"\"a\"\":1}}\",\"[{i}, 1]\",{h},\
                 2024-02-{day:02},{y},{},\"{{{i},2}}\"\n",
                i * 31 % 50,
                i % 50,
                i % 5
            )
        };
        sql.copy("t", (shard * 20..shard * 20 + 20).map(row).collect::<String>().into()).await;
        let row = |i: i64| format!("{},w{},{}\n", i * 3, i % 4, ["ab", "q"][(i % 2) as usize]);
        sql.copy("u", (shard * 5..shard * 5 + 5).map(row).collect::<String>().into()).await;
    }
    sql.run("delete from t where a % 10 = 3").await.unwrap();
    sql
}

/// Aggregate calls that also work with FILTER and over windows.
const AGGREGATES: &[&str] = &[
    "count(*)",
    "count(f)",
    "count(distinct b)",
    "sum(c)",
    "sum(distinct k)",
    "sum(a)",
    "sum(f)",
    "sum(i)",
    "avg(c)",
    "avg(a)",
    "avg(i)",
    "min(b)",
    "min(i)",
    "max(i)",
    "min(at)",
    "max(h)",
    "min(f)",
    "stddev(f)",
    "stddev_pop(c)",
    "var_samp(a)",
    "var_pop(f)",
    "bool_and(y)",
    "bool_or(y)",
    "every(y)",
    "bit_and(k)",
    "bit_or(k)",
    "bit_xor(k)",
    "corr(f, a)",
    "covar_pop(f, a)",
    "covar_samp(f, a)",
    "regr_slope(f, a)",
    "regr_count(f, a)",
    "regr_r2(f, a)",
    "approx_distinct(b)",
    "percentile_cont(0.3) within group (order by f)",
    "percentile_cont(0.3) within group (order by f desc)",
    "percentile_disc(0.9) within group (order by a)",
    "percentile_disc(0.9) within group (order by a desc)",
    "percentile_disc(0.2) within group (order by i desc)",
    "mode() within group (order by k)",
    "mode() within group (order by k desc)",
    "array_agg(a order by a)",
    "array_agg(b order by b desc nulls first, a)",
    "array_agg(b order by b desc nulls last, a)",
    "array_agg(distinct k order by k desc)",
    "string_agg(b, ',' order by a desc)",
    "string_agg(distinct b, ',' order by b desc)",
    "string_agg(b, h order by a)",
    "json_agg(j order by a)",
    "json_agg(o order by a)",
    "jsonb_agg(h order by a)",
    "jsonb_agg(j::text::jsonb order by a)",
    "json_agg(case when y then j end order by a)",
    "json_agg(coalesce(j, '{}'::jsonb) order by a)",
    "jsonb_agg('{\"q\": 1}'::jsonb order by a)",
    "json_agg(h || 'x' order by a)",
    "json_agg(at order by a)",
    "json_object_agg(a, j order by a)",
    "jsonb_object_agg(a, o order by a)",
];

/// Window functions.
const FUNCTIONS: &[&str] = &[
    "row_number()",
    "rank()",
    "dense_rank()",
    "percent_rank()",
    "cume_dist()",
    "ntile(3)",
    "lag(b)",
    "lag(b, 2, 'none')",
    "lead(a)",
    "lead(c, 3, 7.5)",
    "first_value(j)",
    "last_value(h)",
    "nth_value(b, 2)",
];

const WINDOWS: &[&str] = &[
    "partition by k order by a",
    "order by a desc",
    "order by f desc nulls first, a",
    "order by f nulls last, a desc rows between 2 preceding and 1 following",
    "partition by k order by a rows between unbounded preceding and 1 preceding",
    "order by a range between 7 preceding and 3 following",
    TIES,
    "partition by y order by a rows between current row and unbounded following",
];

/// Window with many ties.
const TIES: &str = "order by k groups between 1 preceding and current row";

/// Functions that do not depend on the order of ties.
const SAME_FOR_TIES: &[&str] = &["rank()", "dense_rank()", "percent_rank()", "cume_dist()"];

/// Returns whether an aggregate works over windows: one with ORDER BY or DISTINCT does not.
fn is_for_windows(aggregate: &str) -> bool {
    !aggregate.contains("order by") && !aggregate.contains("distinct")
}

/// Aggregates whose value shows the order of rows.
const SHOWING: &[&str] =
    &["array_agg(a)", "string_agg(b, ',')", "json_agg(j)", "jsonb_agg(h)", "json_object_agg(a, j)"];

/// Returns queries with one aggregate or window function each.
pub(super) fn calls() -> Vec<String> {
    let mut queries = Vec::new();
    for aggregate in AGGREGATES {
        for filter in ["", " filter (where a % 3 = 1)"] {
            queries.push(format!("select {aggregate}{filter} as v from t"));
            queries.push(format!("select k, {aggregate}{filter} as v from t group by k"));
        }
    }
    for window in WINDOWS {
        let functions = if *window == TIES { SAME_FOR_TIES } else { FUNCTIONS };
        for function in functions {
            queries.push(format!("select a, {function} over ({window}) as v from t"));
        }
        let of_windows = AGGREGATES.iter().filter(|aggregate| is_for_windows(aggregate)).chain(if *window == TIES {
            &[]
        } else {
            SHOWING
        });
        for aggregate in of_windows {
            for filter in ["", " filter (where a % 3 = 1)"] {
                queries.push(format!("select a, {aggregate}{filter} over ({window}) as v from t"));
            }
        }
    }
    queries
}

/// Queries for operators and expressions.
pub(super) const OPERATORS: &[&str] = &[
    "select a, b from t where b like 'b1%' and a between 3 and 40",
    "select a from t where b not ilike 'B1%' or f is null",
    "select a from t where not (f is not null) or -a < -55",
    "select a from t where k in (1, 3) and b not in ('b1', 'b2')",
    "select a, case k when 1 then 'one' when 2 then 'two' else h end, case when y then j end from t",
    "select a, coalesce(h, 'z'), j -> 'z', j ->> 'a', o -> 0, h || '|', upper(b), b || j from t",
    "select a, a::text, c::int, f::numeric(8,3), at::date, d::timestamp, i::text, j::text, h::text, y::text, k::float8 from t",
    "select a, '{\"m\": [1]}'::jsonb, '[1]'::json, 'ab'::char(4), null::jsonb, array[j], interval '1 day', date '2024-01-02' from t",
    "select a, timestamptz '2024-05-06 07:08:09+02', time '01:02:03', 1.50::numeric(5,2), '\\x0102'::bytea, 2.5::float4 from t",
    "select a, at + interval '1 month', date_trunc('month', at), extract(hour from at), age(at, at - i), to_char(at, 'YYYY') from t",
    "select greatest(i, interval '1 hour'), i < interval '2 days', i = any(array[i]), l[1], a = any(l) from t",
    "select a, now() - at > interval '0', current_date - d > 0 from t",
    "select a, date_part('year', age(at)), (case when y then 'today' else '2024-01-01' end)::date, statement_timestamp() > at from t",
    "select a, c::text, (c + 0.5)::numeric(12,4)::text, (f::numeric(9,3))::numeric(12,1) from t",
    "select a, sum(a) over (order by a rows between 2 preceding and 1 following) from t",
    "select f from t intersect select f from t where k = 1",
    "select f from t except select f from t where k = 1",
    "select * from (select f, rank() over (partition by y order by f nulls first) as r from t) s where r <= 1",
    "select * from (select f, rank() over (partition by y order by f desc nulls last) as r from t) s where r <= 1",
    "select * from (select b, rank() over (partition by y order by b nulls first) as r from t) s where r <= 1",
    "select count(*) from (select a from t group by a limit 50) s",
    "select a, b::char(3), b::char(3) || '|', f::text::char(2) from t",
    "select * from t order by f desc nulls last, a",
    "select a, f from t order by f nulls first, a desc limit 7",
    "select a from t order by a limit 5 offset 50",
    "select a from t order by a limit 4294967299",
    "select a from t order by a offset 4294967296",
    "select count(*) from (select a from t limit 4294967297) s",
    "select count(*) from (select a from t where f > 2 limit 4294967297) s",
    "select count(*) from (select a from t offset 4294967297) s",
    "select count(*) from (select a from t limit 9) s",
    "select count(*) from (select a from t offset 40 limit 9) s",
    "select distinct k, y from t",
    "select distinct on (k) k, a from t order by k, a desc",
    "select count(*) from (select k from t group by k limit 3 offset 4) s",
    "select b, c, count(*) from t group by grouping sets ((b), (c), ())",
    "select count(*), sum(c) from t group by ()",
    "select count(*) from t group by grouping sets ((), ())",
    "select k, y, grouping(k, y), sum(c) from t group by rollup (k, y)",
    "select h, max(j::text) from t group by h",
    "select t.a, w, t.h from t join u on t.a = u.a",
    "select t.a, u.a, w from t left join u on t.a = u.a and t.c < 20",
    "select t.a, u.a, w from t right join u on t.a = u.a and t.c < 20",
    "select t.a, u.a from t full join u on t.a = u.a",
    "select t.a, u.a from t join u on t.a < u.a - 30",
    "select t.a, u.a from t left join u on t.a < u.a - 30 and t.k = 2",
    "select t.a, u.a from t cross join u where t.k = 2",
    "select a from t where exists (select from u where u.a = t.a and w <> 'w1')",
    "select a from t where not exists (select from u where u.a = t.a and w <> 'w1')",
    "select a from t where a in (select a from u) or k = 1",
    "select a from t where a not in (select a from u)",
    "select a from t where k not in (select nullif(a, 3) from u where a < 10)",
    "select t.h, u.h from t join u on t.h = u.h",
    "select t.a, u.a from t join u on t.a is not distinct from u.a",
    "select a, h from t union all select a, h from u",
    "select a from t union select a from u",
    "select a from t intersect select a from u",
    "select a from t except select a from u",
    "select j from t where k = 1 union all select '{\"u\": 1}'::jsonb from u",
    "select a, generate_series(1, k) from t where k < 4",
    "select a, x, n from t, unnest(l) with ordinality as s(x, n) where a < 30",
    "select * from (select a, k, rank() over (partition by k order by c desc) as r from t) s where r <= 2",
    "select a, lag(a) over (order by a), lag(a) over (order by a desc), nth_value(a, 2) over (order by a desc) from t",
    "select a, lead(b, 2) over (partition by k order by a), lag(b) over (partition by k order by a desc) from t",
    "select k, sum(c) over (partition by k) + 1, count(*) from t group by k, c",
    "select max(a) from t where k = 77",
    "select min(at), max(at) from t",
];
