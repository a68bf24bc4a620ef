//! Tests of the fragment cache on workers.

use super::fixture::{Workers, check};
use crate::sql_fixture::Sql;

/// Returns the hits and misses of the workers' fragment caches.
fn hits_and_misses(workers: &Workers) -> (u64, u64) {
    let uses = workers.workers.iter().flat_map(|worker| {
        let tiers = worker.cache_tiers().into_iter().filter(|tier| tier.tier == "fragment");
        tiers.flat_map(|tier| tier.tables).map(|(_, used)| (used.hits, used.misses))
    });
    uses.fold((0, 0), |(hits, misses), (more, missed)| (hits + more, misses + missed))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_worker_knows_the_groups_of_its_own_shards() {
    let mut sql = Sql::new();
    sql.run("create table big (id bigint, k bigint, v double precision, t text)").await.unwrap();
    for shard in 0..8 {
        let row = |i: i64| format!("{i},{},{i}.25,t{}\n", i % 97, i % 13);
        sql.copy("big", (shard * 3_000..shard * 3_000 + 3_000).map(row).collect::<String>().into()).await;
    }
    let workers = Workers::start(&sql, 3);
    let query = "select t, count(*), sum(v), max(k), avg(id) from big where k <> 5 group by t";
    check(&sql, query, &workers.distribution).await;
    let (hits, misses) = hits_and_misses(&workers);
    assert_eq!((hits, misses), (0, 8), "each shard is one worker's");
    check(&sql, query, &workers.distribution).await;
    assert_eq!(hits_and_misses(&workers), (8, 8));
    sql.run("delete from big where id = 4000").await.unwrap();
    check(&sql, query, &workers.distribution).await;
    assert_eq!(hits_and_misses(&workers), (15, 9), "one of them has a row less");
    sql.settings.set("kiln.fragment_cache", "off").unwrap();
    check(&sql, query, &workers.distribution).await;
    assert_eq!(hits_and_misses(&workers), (15, 9), "the session's settings are the workers'");
}
