//! Tests of tables that are distributed on a key or replicated: rows move between workers only where necessary, and the
//! results are those of one process.

use std::fmt::Write as _;

use catalog::{Table, TableShards};
use exchange::{DistributionContext, JoinDistribution, RunLocation};
use types::Random;
use types::random::SeededRandom;

use super::fixture::{Workers, check, in_one_process, on_workers, run_context};
use crate::sql_fixture::Sql;

/// Types of the key of `fact` and `side`, with equal values.
const KEYS: [&str; 3] = ["bigint", "text", "numeric(12, 2)"];

/// Creates `fact` and `side`, distributed on their keys, `other`, not distributed, and `dim`, replicated.
async fn tables(key: &str) -> Sql {
    let sql = Sql::new();
    let narrow = match key {
        "bigint" => "int",
        "numeric(12, 2)" => "numeric(9, 1)",
        key => key,
    };
    for table in [
        format!("create table fact (k {key}, n int, d int) distribute on (k)"),
        format!("create table side (n int, k {narrow}, name text) distribute on (k) sort on (name)"),
        format!("create table other (k {key}, name text)"),
        "create table dim (d int, name text) distribute replicate".to_owned(),
    ] {
        sql.run(&table).await.expect("it runs");
    }
    sql
}

/// Loads rows with random keys, some of them NULL. `fact` has five times as many keys as `side`.
async fn loaded(key: &str, seed: u64) -> Sql {
    let sql = tables(key).await;
    let random = SeededRandom::new(seed);
    let key = |most: u64| match random.next_u64() % (most + most / 8) {
        key if key < most => key.to_string(),
        _ => String::new(),
    };
    for (table, loads, rows, most) in [("fact", 4, 900, 400), ("side", 3, 150, 600), ("other", 2, 200, 500)] {
        for _ in 0..loads {
            let mut lines = String::new();
            for row in 0..rows {
                let key = key(most);
                let line = match table {
                    "fact" => writeln!(lines, "{key},{},{}", random.next_u64() % 100, row % 20),
                    "side" => writeln!(lines, "{},{key},s{}", random.next_u64() % 100, row % 37),
                    _ => writeln!(lines, "{key},o{}", row % 11),
                };
                line.expect("a string takes all");
            }
            sql.copy(table, lines.into()).await;
        }
    }
    let dims: String = (0..15).map(|d| format!("{d},d{}\n", d % 4)).collect();
    sql.copy("dim", dims.into()).await;
    sql
}

/// Queries with joins, aggregations and windows by the key.
const BY_KEY: [&str; 12] = [
    "select f.k, f.n, s.n, s.name from fact f join side s on f.k = s.k",
    "select f.k, f.n, s.k, s.name from fact f left join side s on f.k = s.k",
    "select f.k, f.n, s.k, s.name from fact f right join side s on f.k = s.k and f.n < 50",
    "select f.k, f.n, s.k, s.name from fact f full join side s on f.k = s.k",
    "select f.k, f.n from fact f where exists (select 1 from side s where s.k = f.k and s.n < 70)",
    "select f.k, f.n from fact f where not exists (select 1 from side s where s.k = f.k)",
    "select k, count(*), sum(n), count(distinct d) from fact group by k",
    "select f.k, count(*), count(s.name) from fact f left join side s on f.k = s.k group by f.k",
    "select s.k, count(*) from fact f left join side s on f.k = s.k group by s.k",
    "select k, n, rank() over (partition by k order by n, d), sum(n) over (partition by k) from fact",
    "select a.k, a.c, b.c from (select k, count(*) c from fact group by k) a join (select k, max(name) c from side group by k) b on a.k = b.k",
    "select a.k, b.n, c.name from fact a join fact b on a.k = b.k and a.n = b.n join side c on c.k = b.k",
];

/// Queries that have to move all or some rows.
const OTHERS: [&str; 9] = [
    "select f.k, o.name from fact f join other o on f.k = o.k",
    "select f.k, o.k, o.name from other o left join fact f on f.k = o.k",
    "select f.n, s.n, s.name from fact f join side s on f.n = s.n where s.name < 's2' and f.n < 20",
    "select n, count(*) from fact group by n",
    "select s.k, o.name, count(*) from fact f join side s on f.k = s.k join other o on o.k = s.k group by 1, 2",
    "select o.name, s.name, f.n from other o join (fact f full join side s on f.k = s.k) on o.k = s.k",
    "select k from fact union all select k from side",
    "select k, count(*) from (select k from fact union all select k from side) u group by k",
    "select k from fact where k not in (select k from side where k is not null) or k is null",
];

async fn tasks(sql: &Sql, query: &str, distribution: &DistributionContext) -> String {
    let context = run_context(sql, distribution);
    sql.run_with(&format!("explain (analyze, costs off) {query}"), &context).await.expect("it runs").join("\n")
}

/// Checks all queries on clusters with these numbers of workers.
async fn check_all(sql: &Sql, about: &str, counts: &[usize]) {
    let clusters: Vec<_> = counts.iter().map(|count| Workers::start(sql, *count)).collect();
    for (number, query) in BY_KEY.iter().chain(&OTHERS).enumerate() {
        let expected = in_one_process(sql, query).await;
        for workers in &clusters {
            let joins = if number % 2 == 0 { JoinDistribution::ByCost } else { JoinDistribution::Shuffle };
            let about = format!("{about}, {} workers, {joins:?}: {query}", workers.workers.len());
            let ran = on_workers(sql, query, &workers.with_joins(joins)).await;
            let (rows, spread) = ran.unwrap_or_else(|error| panic!("{about}: {error:?}"));
            assert!(!matches!(spread, RunLocation::Instance(_)), "{about}: {spread:?}");
            assert_eq!(rows, expected, "{about}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_key_meet_without_an_exchange_whatever_the_join() {
    for (key, seed) in KEYS.iter().zip(1..) {
        let sql = loaded(key, seed).await;
        let workers = Workers::start(&sql, 3);
        for query in BY_KEY {
            let rows = check(&sql, query, &workers.distribution).await;
            assert!(!rows.is_empty(), "{query} shows nothing");
            let text = tasks(&sql, query, &workers.distribution).await;
            let is_by_others = query.contains("group by s.k");
            assert_eq!(text.contains("Shuffle") || text.contains("Broadcast"), is_by_others, "{query}\n{text}");
            assert_eq!(text.contains("Mode: co-located"), query.contains("join") || query.contains("exists"), "{text}");
            assert!(text.contains("Distribution: by bucket of k"), "{text}");
        }
    }
}

/// Joins of a table distributed on the join key with one that is not: only rows of the latter move.
const TO_OWNERS: [&str; 9] = [
    "select f.k, f.n, o.name from fact f join other o on f.k = o.k",
    "select f.k, f.n, o.k, o.name from fact f left join other o on f.k = o.k and o.name < 'o5'",
    "select f.k, f.n, o.k, o.name from fact f right join other o on f.k = o.k and f.n < 50",
    "select f.k, f.n, o.k, o.name from other o full join fact f on f.k = o.k",
    "select f.k, f.n from fact f where exists (select 1 from other o where o.k = f.k and o.name < 'o5')",
    "select f.k, f.n from fact f where not exists (select 1 from other o where o.k = f.k)",
    "select o.k, o.name from other o where not exists (select 1 from side s where o.k = s.k)",
    "select o.k, o.name, s.name, f.n from other o join side s on o.k = s.k join fact f on f.k = s.k",
    "select o.k, count(*), count(f.n) from other o join fact f on f.k = o.k group by o.k",
];

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_side_go_to_the_owners_of_the_others_buckets() {
    for (key, seed) in KEYS.iter().zip(51..) {
        let mut sql = loaded(key, seed).await;
        let workers = Workers::start(&sql, 3);
        let distribution = workers.with_joins(JoinDistribution::Shuffle);
        for query in TO_OWNERS {
            let rows = check(&sql, query, &distribution).await;
            assert!(!rows.is_empty(), "{query} shows nothing");
            let text = tasks(&sql, query, &distribution).await;
            assert!(text.contains("To Owner Of: k"), "{query}\n{text}");
            assert_eq!(text.matches("Shuffle").count(), 1, "{query}\n{text}");
        }
        sql.settings.set("kiln.engine", "off").expect("there is such a setting");
        for query in TO_OWNERS {
            check(&sql, query, &distribution).await;
        }
        sql.settings.set("kiln.engine", "on").expect("there is such a setting");
        sql.run("delete from fact").await.expect("it runs");
        for query in TO_OWNERS {
            let (rows, _) = on_workers(&sql, query, &distribution).await.expect("it runs");
            assert_eq!(rows, in_one_process(&sql, query).await, "{query} without facts");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_the_same_whatever_has_become_of_the_rows() {
    let sql = loaded("bigint", 11).await;
    check_all(&sql, "after loads", &[2, 3, 5]).await;
    sql.run("delete from fact where n % 7 = 0").await.expect("it runs");
    sql.run("update side set k = k + 1 where n < 30").await.expect("it runs");
    sql.run("insert into fact select k, n, 99 from side where n < 40").await.expect("it runs");
    sql.run("insert into side values (5, 7, 'fresh'), (6, null, 'fresh')").await.expect("it runs");
    check_all(&sql, "with fresh and deleted rows", &[2, 3]).await;
    let oids: Vec<_> = sql.warehouse.transactions.current().state.tables().map(|table| table.oid).collect();
    for table in &oids {
        sql.warehouse.execution.maintenance().flush(*table).await.expect("rows settle");
        let all = |_: &Table, shards: &TableShards| shards.shards.ids().collect();
        sql.warehouse.execution.maintenance().compact_chosen(*table, all).await.expect("shards are put together");
    }
    check_all(&sql, "after compaction", &[3, 4]).await;
    let workers = Workers::start(&sql, 3);
    let text = tasks(&sql, BY_KEY[0], &workers.distribution).await;
    assert!(text.contains("Mode: co-located"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_distributed_anew_is_so_once_its_rows_are_written_anew() {
    let sql = loaded("bigint", 23).await;
    let workers = Workers::start(&sql, 3);
    sql.run("alter table side set distribute on (n)").await.expect("it runs");
    sql.run("alter table other set distribute on (k)").await.expect("it runs");
    let by_n = "select o.k, o.name, f.n from other o join fact f on o.k = f.k";
    let text = tasks(&sql, by_n, &workers.distribution).await;
    assert!(text.contains("not by bucket of k: 2 of 2 shards written otherwise"), "{text}");
    assert!(!text.contains("co-located"), "{text}");
    check_all(&sql, "with shards of before", &[3]).await;
    sql.copy("other", "1,new\n2,new\n".into()).await;
    check_all(&sql, "with shards of before and after", &[3]).await;
    let state = sql.warehouse.transactions.current().state;
    let oid = |name: &str| state.tables().find(|table| table.name == name).expect("it is there").oid;
    assert_eq!(
        sql.warehouse.execution.maintenance().redistribute(oid("other")).await.expect("shards are written anew"),
        2
    );
    assert_eq!(
        sql.warehouse.execution.maintenance().redistribute(oid("other")).await.expect("shards are written anew"),
        0
    );
    assert_eq!(
        sql.warehouse.execution.maintenance().redistribute(oid("dim")).await.expect("shards are written anew"),
        0
    );
    let text = tasks(&sql, by_n, &workers.distribution).await;
    assert!(text.contains("Mode: co-located") && !text.contains("not by bucket"), "{text}");
    check_all(&sql, "with all shards written anew", &[3]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_worker_reads_all_of_what_is_replicated_where_that_spares_an_exchange() {
    let sql = loaded("bigint", 31).await;
    sql.run("insert into dim values (3, 'fresh'), (77, 'fresh')").await.expect("it runs");
    let workers = Workers::start(&sql, 3);
    let spared = [
        "select f.k, f.n, d.name from fact f join dim d on f.d = d.d",
        "select f.k, f.d, d.name from fact f left join dim d on f.d = d.d and d.name <> 'd2'",
        "select f.k, f.d from fact f where exists (select 1 from dim d where d.d = f.d and d.name < 'd3')",
        "select f.k, f.d from fact f where not exists (select 1 from dim d where d.d = f.d)",
        "select f.k, count(*), max(s.name) from fact f join dim d on f.d = d.d join side s on s.k = f.k group by f.k",
    ];
    for query in spared {
        for joins in [JoinDistribution::ByCost, JoinDistribution::Shuffle] {
            let distribution = workers.with_joins(joins);
            assert!(!check(&sql, query, &distribution).await.is_empty(), "{query} shows nothing");
            let text = tasks(&sql, query, &distribution).await;
            assert!(!text.contains("Shuffle") && !text.contains("Broadcast"), "{query}\n{text}");
            assert!(text.contains("Distribution: all of it in each task"), "{text}");
        }
    }
    // Unmatched rows of a replicated table would be output by each task.
    for query in [
        "select f.k, d.d, d.name from dim d left join fact f on f.d = d.d",
        "select f.k, d.d, d.name from dim d full join fact f on f.d = d.d",
        "select d.d from dim d where exists (select 1 from fact f where f.d = d.d and f.n < 50)",
        "select d.d from dim d where not exists (select 1 from fact f where f.d = d.d)",
        "select a.d, b.name from dim a join dim b on a.d = b.d",
        "select a.d, b.name from dim a left join dim b on a.d = b.d + 1",
        "select d, count(*) from dim group by d",
        "select * from dim",
    ] {
        for joins in [JoinDistribution::ByCost, JoinDistribution::Shuffle] {
            let (rows, spread) = on_workers(&sql, query, &workers.with_joins(joins)).await.expect("it runs");
            assert!(!matches!(spread, RunLocation::Instance(_)), "{query}: {spread:?}");
            assert_eq!(rows, in_one_process(&sql, query).await, "{query} with {joins:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_that_no_program_runs_meet_in_place_too() {
    let mut sql = loaded("text", 41).await;
    sql.settings.set("kiln.engine", "off").expect("there is such a setting");
    let workers = Workers::start(&sql, 3);
    for query in BY_KEY.iter().chain(&OTHERS) {
        let (rows, spread) = on_workers(&sql, query, &workers.distribution).await.expect("it runs");
        assert!(!matches!(spread, RunLocation::Instance(_)), "{query}: {spread:?}");
        assert_eq!(rows, in_one_process(&sql, query).await, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_two_columns_meet_in_their_order() {
    let sql = Sql::new();
    for table in ["a", "b"] {
        sql.run(&format!("create table {table} (x int, y text, v int) distribute on (x, y)")).await.expect("it runs");
        let line = |row: u32| format!("{},{},{row}\n", row % 13, char::from(b'a' + (row % 7).to_le_bytes()[0]));
        sql.copy(table, (0..600).map(line).collect::<String>().into()).await;
    }
    sql.run("create table c (y text, x int, v int) distribute on (y, x)").await.expect("it runs");
    sql.run("insert into c select y, x, v from a").await.expect("it runs");
    let workers = Workers::start(&sql, 4);
    for (query, is_co_located) in [
        ("select a.v, b.v from a join b on b.y = a.y and a.x = b.x and a.v < b.v", true),
        ("select a.v, b.v from a join b on a.x = b.x and a.v = b.v", false),
        ("select a.v, c.v from a join c on a.x = c.x and a.y = c.y", false),
        ("select x, y, v, count(*) from a group by v, y, x", false),
    ] {
        check(&sql, query, &workers.distribution).await;
        let text = tasks(&sql, query, &workers.with_joins(JoinDistribution::Shuffle)).await;
        assert_eq!(text.contains("Mode: co-located"), is_co_located, "{query}\n{text}");
    }
}
