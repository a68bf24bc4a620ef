//! The page cache: after a restart pages come from its disk tier, whose damaged files change no answer; in its memory
//! tier, pages read once do not evict frequently read ones.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::Client;
use types::random::SeededRandom;
use types::{Clock, Random, SystemClock};

use crate::server::Server;

const QUERIES: [&str; 4] = [
    "SELECT count(*)::text || ' ' || sum(n)::text || ' ' || max(word) || ' ' || max(name) FROM t",
    "SELECT string_agg(word || count::text, ' ' ORDER BY word) FROM (SELECT word, count(*) FROM t WHERE n % 3 = 0 GROUP BY word) AS g",
    "SELECT count(*)::text FROM t WHERE name LIKE '%77%' AND price > 100",
    "SELECT count(*)::text || ' ' || sum(length(raw))::text || ' ' || max(span)::text || ' ' || sum(list[2])::text FROM t WHERE id > 'a0000000-0000-0000-0000-000000000000' AND raw < '\\xd0'",
];
/// Disables the fragment cache, so that pages are read each time.
const PAGES: &str = "--fragment-cache-mb=0";
const COLUMNS: &str = "n, word, name, price, id, raw, span and list";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_comes_from_disk_after_a_restart_and_damage_changes_no_answer() {
    let folder = TempDir::with_prefix("kiln-cache-").expect("a temporary folder can be made");
    let server = Server::start_on(folder.path(), &["--settle-rows", "1000000", PAGES]);
    let client = server.connect().await;
    client
        .batch_execute(
            "CREATE TABLE t (n int, word text, name text, price numeric(10,2), id uuid, raw bytea, span interval, list int[])
                 WITH (storage = column);
             INSERT INTO t SELECT i, 'word ' || i % 7, 'name ' || i, i * 0.25, md5(i::text)::uuid, decode(md5(i::text), 'hex'),
                 i * interval '1 second', ARRAY[i, i % 10] FROM generate_series(1, 300000) AS g(i);
             CREATE TABLE gone (n int) WITH (storage = column);
             INSERT INTO gone SELECT i FROM generate_series(1, 20000) AS g(i)",
        )
        .await
        .expect("the statements run");
    let expected = answers(&client).await;
    // A page enters the cache when it is read for the third time.
    for _ in 1..3 {
        assert_eq!(answers(&client).await, expected);
    }
    client.batch_execute("SELECT sum(n) FROM gone").await.expect("it is there");
    let blocks = cache_stats(&client, "memory", "t").await.blocks;
    assert!(0 < blocks, "{COLUMNS} were read");
    until_on_disk(&client, blocks).await;
    client.batch_execute("DROP TABLE gone").await.expect("it is there");
    drop(client);
    server.kill();

    let server = Server::start_on(folder.path(), &[PAGES]);
    let client = server.connect().await;
    until_on_disk(&client, blocks).await;
    assert_eq!(answers(&client).await, expected);
    let disk = cache_stats(&client, "disk", "t").await;
    assert_eq!((disk.hits, disk.misses), (blocks, 0), "what was read before is read from disk");
    wait_until_dropped_blocks_gone(&client).await;
    drop(client);
    assert!(server.stop(), "it ends cleanly");

    let files = files(&folder.path().join("cache"));
    assert!(!files.is_empty());
    let random = SeededRandom::new(11);
    for round in 0..6 {
        let server = Server::start_on(folder.path(), &[PAGES]);
        let client = server.connect().await;
        // Both before and after the server has checked the files.
        if round % 2 == 1 {
            until_on_disk(&client, blocks).await;
        }
        for file in &files {
            damage(file, round, &random);
        }
        assert_eq!(answers(&client).await, expected, "round {round}");
        let disk = cache_stats(&client, "disk", "t").await;
        // A lost page is read from storage without being cached, and read again by the next query.
        assert!((blocks..=2 * blocks).contains(&(disk.hits + disk.misses)), "{disk:?}");
        // Lost pages are written again while the server is idle.
        until_on_disk(&client, blocks).await;
        assert_eq!(answers(&client).await, expected, "round {round}");
        drop(client);
        server.kill();
    }

    let server = Server::start_on(folder.path(), &["--cache-disk-mb", "0", PAGES]);
    assert_eq!(answers(&server.connect().await).await, expected);
    assert!(self::files(&folder.path().join("cache")).is_empty(), "none is kept");
}

/// The cache holds a sixth of the cold table, which is scanned entirely: from the third scan on its pages qualify
/// too.
#[tokio::test(flavor = "multi_thread")]
async fn scans_of_a_cold_table_leave_a_hot_one_in_memory() {
    let folder = TempDir::with_prefix("kiln-cache-").expect("a temporary folder can be made");
    let limits = ["--cache-memory-mb", "2", "--cache-disk-mb", "0", "--settle-rows", "1000000", PAGES];
    let server = Server::start_on(folder.path(), &limits);
    let client = server.connect().await;
    // 20-bit numbers in no order.
    let primes = [7919, 104_729, 15_485_863, 32_452_843, 49_979_687, 67_867_967, 86_028_121, 104_395_301];
    let columns = primes.map(|prime| format!("(i * {prime} % 1000003)::int AS c{prime}")).join(", ");
    let sums = primes.map(|prime| format!("sum(c{prime})")).join(", ");
    let tables = format!(
        "CREATE TABLE hot WITH (storage = column) AS SELECT {columns} FROM generate_series(1::int8, 5000) AS g(i);
         CREATE TABLE cold WITH (storage = column) AS SELECT {columns} FROM generate_series(1::int8, 600000) AS g(i)"
    );
    client.batch_execute(&tables).await.expect("the statements run");
    let read = async |table: &str| {
        client.batch_execute(&format!("SELECT {sums} FROM {table}")).await.expect("it is answered");
    };
    for _ in 0..5 {
        read("hot").await;
    }
    let before = cache_stats(&client, "memory", "hot").await;
    assert!(0 < before.blocks && before.blocks <= before.hits, "it is hot: {before:?}");
    for round in 1..=3 {
        read("cold").await;
        read("hot").await;
        read("hot").await;
        let now = cache_stats(&client, "memory", "hot").await;
        assert_eq!((now.hits - before.hits, now.misses), (2 * round * before.blocks, before.misses), "{before:?}");
    }
    let evictions = "SELECT evictions FROM sys.cache WHERE tier = 'memory' AND table_name = 'cold'";
    let evictions: i64 = client.query_one(evictions, &[]).await.expect("it was read").get(0);
    assert!(0 < evictions, "there is no room for all of it");
}

async fn answers(client: &Client) -> Vec<String> {
    let mut answers = Vec::new();
    for query in QUERIES {
        answers.push(client.query_one(query, &[]).await.expect("it is answered").get(0));
    }
    answers
}

#[derive(Debug)]
struct CacheStats {
    blocks: i64,
    hits: i64,
    misses: i64,
}

/// Returns the cache statistics of a table in one tier.
async fn cache_stats(client: &Client, tier: &str, table: &str) -> CacheStats {
    let query = "SELECT blocks, hits, misses FROM sys.cache WHERE tier = $1 AND table_name = $2";
    let row = client.query_opt(query, &[&tier, &table]).await.expect("it is a table");
    row.map_or(CacheStats { blocks: 0, hits: 0, misses: 0 }, |row| CacheStats {
        blocks: row.get(0),
        hits: row.get(1),
        misses: row.get(2),
    })
}

/// Waits until `blocks` blocks are on disk: files are written, and checked after a start, in the background.
async fn until_on_disk(client: &Client, blocks: i64) {
    let clock = SystemClock::new();
    for _ in 0..5_000 {
        if cache_stats(client, "disk", "t").await.blocks == blocks {
            return;
        }
        clock.sleep(Duration::from_millis(20)).await;
    }
    panic!("{:?} are on disk, not {blocks}", cache_stats(client, "disk", "t").await);
}

/// Waits until the blocks of dropped tables are gone, which takes seconds.
async fn wait_until_dropped_blocks_gone(client: &Client) {
    let clock = SystemClock::new();
    let query = "SELECT sum(blocks)::int8 FROM sys.cache WHERE table_name IS NULL";
    for _ in 0..5_000 {
        if client.query_one(query, &[]).await.expect("it is a table").get::<_, i64>(0) == 0 {
            return;
        }
        clock.sleep(Duration::from_millis(20)).await;
    }
    panic!("blocks of a dropped table are held");
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it is there").path()).collect()
}

/// Truncates a file, overwrites its end with noise, flips bits or deletes it; a file that is gone stays so.
fn damage(file: &Path, round: u32, random: &dyn Random) {
    let Ok(mut bytes) = std::fs::read(file) else { return };
    let draw = |below: usize| usize::try_from(random.next_u64() % below as u64).expect("it is below a length");
    let length = bytes.len();
    let at = draw(length);
    match round {
        0 | 1 => (0..200).for_each(|_| bytes[draw(length)] ^= 1 << draw(8)),
        2 => bytes.truncate(at),
        3 => random.fill(&mut bytes[at..]),
        4 => random.fill(&mut bytes),
        _ => return std::fs::remove_file(file).expect("it is there"),
    }
    std::fs::write(file, bytes).expect("the folder is ours");
}
