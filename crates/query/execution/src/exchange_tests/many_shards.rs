//! Tests of the size of messages for tables with many shards.

use std::sync::Arc;

use binder::StatementPlan;
use catalog::{Change, Schema};
use exchange::message_bytes;
use operators::plan_query;
use shards::{ColumnStats, Datum, Hll, RowGroupMeta, RowIds, ShardMeta};
use tokio_util::sync::CancellationToken;
use types::{ColumnId, Oid, Random, RowId, ShardId, SystemRandom};

use crate::sql_fixture::Sql;

/// Returns the metadata of a shard of events: ten shards per day, each with its own range of customers, in no order.
fn shard(table: Oid, number: i64) -> Arc<ShardMeta> {
    let id = ShardId(SystemRandom.uuid());
    let stats = |column, min: Datum, max: Datum| ColumnStats {
        column: ColumnId(column),
        nulls: 0,
        nulls_guessed: false,
        min: Some(min),
        max: Some(max),
        bounds_exact: true,
        distinct: Hll::default(),
        ascending: false,
        strictly_ascending: false,
        average_run: 1.0,
        heavy_hitters: Vec::new(),
        bytes: 1 << 20,
    };
    let customer = number * 7_919 % 100_003 * 1_000;
    let region = |end: &str| Datum::Text(format!("region {customer:09} {end}"));
    Arc::new(ShardMeta {
        id,
        object: format!("tables/{table}/{id}.parquet"),
        rows: 1_000_000,
        bytes: 100 << 20,
        tail_bytes: 20_000,
        tail_checksum: number.cast_unsigned(),
        columns: vec![
            stats(1, Datum::Int(number / 10), Datum::Int(number / 10)),
            stats(2, Datum::Int(customer), Datum::Int(customer + 999)),
            stats(3, region("a"), region("z")),
        ],
        row_groups: vec![RowGroupMeta { rows: 1_000_000, bytes: 100 << 20 }],
        row_ids: RowIds::From(RowId(number.cast_unsigned() * 1_000_000)),
        buckets: None,
    })
}

/// Creates the catalog entry of `events` with `count` shards that do not exist in storage.
async fn events(count: i64) -> Sql {
    let sql = Sql::new();
    let create = "create table events (day date, customer bigint, region text) with (storage = column)";
    sql.run(create).await.expect("it runs");
    let state = Arc::clone(&sql.warehouse.transactions.current().state);
    let table = state.relation(Schema::PUBLIC, "events").expect("it was made").oid();
    let mut transaction = sql.warehouse.begin();
    let shards = (0..count).map(|number| shard(table, number)).collect();
    transaction.stage(vec![Change::AddShards { table, shards, sample: None }]).expect("nobody else changes it");
    transaction.commit().await.expect("nobody else changes it");
    sql
}

async fn sent(sql: &Sql, query: &str) -> usize {
    let StatementPlan::Query(plan) = sql.plan(query).expect("it is planned") else { panic!("{query} is no query") };
    let operators = plan_query(&plan, &CancellationToken::new()).await.expect("it has operators");
    message_bytes(&operators).expect("they can be sent")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_does_not_grow_with_the_table() {
    let (few, many) = (events(600).await, events(20_000).await);
    for (filter, left) in [
        ("day = date '1970-02-10'", 10),
        ("day between date '1970-02-01' and date '1970-02-02' and customer > 5", 20),
        ("customer = 7919123", 1),
        ("region = 'region 007919000 m'", 1),
        ("region like 'region 007919000%' and day < date '1980-01-01'", 1),
    ] {
        let query = format!("select sum(customer), max(region) from events where {filter}");
        for (sql, count) in [(&few, 600), (&many, 20_000)] {
            let plan = sql.run(&format!("explain {query}")).await.expect("it runs").join("\n");
            assert!(plan.contains(&format!("Shards: {left} of {count}")), "{plan}");
        }
        let (small, large) = (sent(&few, &query).await, sent(&many, &query).await);
        // Larger shard numbers take a few more bytes.
        assert!(large <= small + 8 * left + 16, "{filter}: {large} bytes instead of {small}");
        assert!(large < 6_000 * left + 10_000, "{filter}: {large} bytes for {left} shards");
    }
    // Without a condition, a limit determines how many shards are enough.
    let plan = many.run("explain select customer from events limit 1000001").await.expect("it runs").join("\n");
    assert!(plan.contains("Shards: 2 of 20000"), "{plan}");
}
