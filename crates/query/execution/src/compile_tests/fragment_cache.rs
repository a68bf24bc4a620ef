use shards::CacheStats;

use crate::sql_fixture::Sql;

/// Number of shards of the table.
const SHARDS: u64 = 4;

/// Creates `t` with 20,000 rows in four shards, and a small table.
async fn tables() -> Sql {
    let mut sql = Sql::new();
    sql.settings.set("kiln.direct_load_rows", "1000").unwrap();
    let columns = "n bigint, v numeric(12,2), f double precision, s text, b text, at timestamptz, d date";
    sql.run(&format!("create table t ({columns})")).await.unwrap();
    for start in (0..20_000).step_by(5_000) {
        let insert = format!(
            "insert into t select i, i * 0.25, i / 4.0::float8, 's' || i % 7, 'b' || i % 5, \
             timestamptz '2024-01-01 00:00:00+00' + i * interval '1 hour', date '2024-01-01' + (i % 90)::int \
             from generate_series({start}::bigint, {}) as g(i)",
            start + 4_999
        );
        sql.run(&insert).await.unwrap();
    }
    sql.run("create table small (n bigint)").await.unwrap();
    sql.run("insert into small values (3), (4), (5)").await.unwrap();
    sql
}

/// Returns the use of the fragment cache.
fn cache_use(sql: &Sql) -> CacheStats {
    let tiers = sql.warehouse.execution.cache_tiers();
    let tier = tiers.into_iter().find(|tier| tier.tier == "fragment").expect("there is such a tier");
    let mut all = CacheStats::default();
    tier.tables.into_iter().for_each(|(_, used)| all += used);
    all
}

/// Runs a query. Returns its sorted rows, and how many shards were found in the fragment cache and how many were not.
async fn run_with_cache_use(sql: &Sql, query: &str) -> (Vec<String>, u64, u64) {
    let before = cache_use(sql);
    let mut rows = sql.run(query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
    let after = cache_use(sql);
    rows.sort();
    (rows, after.hits - before.hits, after.misses - before.misses)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_in_other_words_is_known() {
    for same in [
        [
            "select s, sum(v), count(*) from t where n > 10 and f < 4999 group by s",
            "select w.name, sum(w.total), count(*) from (select b, f as g, s as name, v as total, n as id from t) as w \
             where 4999 > w.g and 10 < w.id group by w.name",
        ],
        [
            "select count(*) from t where n in (1, 6000, 11000, 19000)",
            "select count(*) as c from t as u where u.n in (19000, 1, 11000, 6000, 1)",
        ],
        // Grouping sets are derived from groups.
        ["select s, b, sum(f) from t group by s, b", "select s, b, sum(f), grouping(s) from t group by cube (s, b)"],
        [
            "select s, b, count(*) from t group by s, b",
            "select s, b, count(*) from t where true group by rollup (1, 2) order by 1, 2",
        ],
        // Both need one sum and one count.
        ["select s, avg(v) from t group by s", "select s, sum(v), count(v) from t group by s"],
        [
            "select date_trunc('month', at), max(s) from t where d <> date '2024-02-03' group by 1",
            "select date_trunc('month', q.moment), max(q.word) from (select at as moment, s as word, d as day from t) as q \
             where date '2024-02-03' <> q.day group by 1",
        ],
        ["select count(distinct s) from t", "select count(distinct u.s) from t as u"],
        [
            "select b, count(*) filter (where s = 's1' or n < 5) from t group by b",
            "select b, count(*) filter (where 5 > n or 's1' = s) from t group by b",
        ],
        [
            "select case when n % 2 = 0 then 'even' else upper(s) end, count(*) from t where s like 's%' group by 1",
            "select case when n % 2 = 0 then 'even' else upper(s) end as w, count(*) from t as r where r.s like 's%' group by 1",
        ],
    ] {
        let mut sql = tables().await;
        for (number, query) in same.iter().enumerate() {
            let (first, known, missed) = run_with_cache_use(&sql, query).await;
            let expected = if number == 0 { (0, SHARDS) } else { (SHARDS, 0) };
            assert_eq!((known, missed), expected, "{query}");
            let (again, known, missed) = run_with_cache_use(&sql, query).await;
            assert_eq!((known, missed), (SHARDS, 0), "{query}");
            assert_eq!(again, first, "{query}");
            sql.settings.set("kiln.fragment_cache", "off").unwrap();
            assert_eq!(run_with_cache_use(&sql, query).await, (first, 0, 0), "{query}");
            sql.settings.set("kiln.fragment_cache", "on").unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_another_is_not_known() {
    let mut sql = tables().await;
    for query in [
        "select sum(v) from t",
        "select sum(f) from t",
        "select sum(n) from t",
        "select min(v) from t where n <> 3",
        "select max(v) from t where n <> 3",
        "select sum(v + 1) from t",
        "select sum(v + 2) from t",
        "select sum(v * 2) from t",
        "select stddev(f) from t",
        "select count(*) from t where n >= 10",
        "select count(*) from t where n > 10",
        "select count(*) from t where n > 11",
        "select count(*) from t where not n > 11",
        "select count(*) from t where n > 11 or f > 1",
        "select count(*) from t where n > 11 and f > 1",
        "select count(*) from t where n in (1, 2, 5000, 10000, 15000)",
        "select count(*) from t where n not in (1, 2, 5000, 10000, 15000)",
        "select count(*) from t where s like 's1%'",
        "select count(*) from t where s not like 's1%'",
        "select count(*) from t where b like 'b1%'",
        "select count(*) from t where s is not null and length(s) = 1",
        "select count(*) from t where s is not null and length(s) = 2",
        "select count(*) filter (where n > 10) from t",
        "select count(*) filter (where n > 11) from t",
        "select count(n) filter (where n > 11) from t",
        "select count(distinct s) from t",
        "select count(distinct b) from t",
        "select count(distinct s), count(distinct b) from t",
        "select s, count(*) from t group by s",
        "select upper(s), count(*) from t group by 1",
        "select lower(s), count(*) from t group by 1",
        "select substr(s, 1, 1), count(*) from t group by 1",
        "select substr(s, 2, 1), count(*) from t group by 1",
        "select s, b, count(*) from t group by 1, 2",
        "select date_trunc('month', at), count(*) from t group by 1",
        "select date_trunc('year', at), count(*) from t group by 1",
        "select date_trunc('month', d), count(*) from t group by 1",
        "select extract(month from d), count(*) from t group by 1",
        "select extract(day from d), count(*) from t group by 1",
        "select case when n < 9 then 1 else 2 end, count(*) from t group by 1",
        "select case when n < 9 then 2 else 1 end, count(*) from t group by 1",
        "select round(f), count(*) from t where f < 9 group by 1",
        "select floor(f), count(*) from t where f < 9 group by 1",
    ] {
        let (first, known, missed) = run_with_cache_use(&sql, query).await;
        assert_eq!(known, 0, "{query}");
        // The condition may prune shards.
        assert!((1..=SHARDS).contains(&missed), "{query}: {missed}");
        assert_eq!(run_with_cache_use(&sql, query).await, (first, missed, 0), "{query}");
    }
    let query = "select date_trunc('month', at), count(*) from t group by 1";
    sql.settings.set("timezone", "Asia/Tokyo").unwrap();
    let (tokyo, known, missed) = run_with_cache_use(&sql, query).await;
    assert_eq!((known, missed), (0, SHARDS), "months begin at another time there");
    assert_eq!(run_with_cache_use(&sql, query).await, (tokyo, SHARDS, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_depends_on_more_than_rows_is_not_asked() {
    let sql = tables().await;
    for query in [
        "select count(*) from t where random() < 2",
        "select count(*) filter (where age(at) is null) from t",
        "select count(*) from t join small on t.n = small.n",
        "select count(*) from (select n from t limit 7000) as few",
        "select count(*) from small",
        "select s from t where n < 3 order by s",
    ] {
        for _ in 0..2 {
            assert_eq!(run_with_cache_use(&sql, query).await.1, 0, "{query}");
            let (_, known, missed) = run_with_cache_use(&sql, query).await;
            assert_eq!((known, missed), (0, 0), "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_shards_whose_rows_have_changed_are_read_again() {
    let sql = tables().await;
    let query = "select s, count(*), sum(v) from t group by s";
    run_with_cache_use(&sql, query).await;
    sql.run("delete from t where n between 100 and 199").await.unwrap();
    let (deleted, known, missed) = run_with_cache_use(&sql, query).await;
    assert_eq!((known, missed), (SHARDS - 1, 1));
    assert_eq!(run_with_cache_use(&sql, query).await, (deleted, SHARDS, 0));
    // Some new rows are not flushed; they are aggregated each time.
    sql.run("insert into t (n, v, s) values (1, 1, 'new'), (2, 2, 's1')").await.unwrap();
    for _ in 0..2 {
        let (rows, known, missed) = run_with_cache_use(&sql, query).await;
        assert!(rows.iter().any(|row| row == "new|1|1.00"), "{rows:?}");
        assert_eq!((known, missed), (SHARDS, 0));
    }
    let plan = sql.run(&format!("explain (analyze, costs off) {query}")).await.unwrap();
    assert!(plan.iter().any(|line| line.trim_start() == "Shards from Cache: 4"), "{plan:#?}");
    let plan = sql.run("explain (analyze, costs off) select min(v) from t").await.unwrap();
    assert!(!plan.iter().any(|line| line.contains("Shards from Cache")), "{plan:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_groups_are_given_up_and_not_tried_again() {
    let sql = tables().await;
    let query = "select count(*), sum(c) from (select n * 7919 % 20011, count(*) as c from t group by 1) as g";
    let (rows, known, missed) = run_with_cache_use(&sql, query).await;
    assert_eq!((rows, known, missed), (vec!["20000|20000".to_owned()], 0, SHARDS));
    let (rows, known, missed) = run_with_cache_use(&sql, query).await;
    assert_eq!((rows, known, missed), (vec!["20000|20000".to_owned()], 0, 0), "it is known that it is not worth it");
    assert_eq!(cache_use(&sql).blocks, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_floats_are_the_same_each_time() {
    let sql = tables().await;
    sql.run("insert into t (f, s) select 1 / i::float8, 's' || i % 3 from generate_series(1, 30000) as g(i)")
        .await
        .unwrap();
    let query = "select s, sum(f), avg(f), stddev(f) from t group by s";
    // The order of the first run depends on threads.
    run_with_cache_use(&sql, query).await;
    let (second, _, _) = run_with_cache_use(&sql, query).await;
    for _ in 0..5 {
        assert_eq!(run_with_cache_use(&sql, query).await.0, second);
    }
}
