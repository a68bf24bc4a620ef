//! Functions whose results exceed the memory crash no server: each statement is answered, refused or cancelled, its
//! threads become free immediately, and memory stays bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use types::{Clock, SystemClock};

use crate::memory::resident_bytes;
use crate::server::Server;

/// Query memory of the server.
const MEMORY_MB: &str = "512";
/// Limit of resident memory: values in flight have another third, the allocator keeps freed memory for a while, and
/// single values may be copied.
const RESIDENT_BYTES_MAX: u64 = 3 << 30;
/// Time within which a stopped statement frees its threads, on any machine.
const FREE_TIME_MAX: Duration = Duration::from_secs(30);

/// Statements that would produce gigabytes from 8,000 rows, or from one.
const STATEMENTS: [&str; 30] = [
    "SELECT sum(length(lpad(v::text, 900000))) FROM n",
    "SELECT sum(length(repeat('x', 100000000 + v))) FROM n",
    "SELECT max(t || repeat('x', 900000)) FROM n",
    "SELECT sum(length(upper(repeat(t, 900000 + v)))) FROM n",
    "SELECT sum(length(replace(t, 'x', repeat('y', 900000)))) FROM n",
    "SELECT sum(length(substr(repeat('x', 900000), v))) FROM n",
    "SELECT sum(length(format('%900000s', t))) FROM n",
    "SELECT sum(cardinality(string_to_array(repeat('x,', 900000 + v), ','))) FROM n",
    "SELECT sum(length(regexp_replace(repeat('x', 90000 + v), 'x', 'yyyyyyyyyyyy', 'g'))) FROM n",
    "SELECT sum(length(jsonb_build_object('a', repeat('x', 900000 + v))::text)) FROM n",
    "SELECT sum(length(encode(repeat('x', 900000 + v)::bytea, 'hex'))) FROM n",
    "SELECT cardinality(array_agg(repeat('x', 900000 + v))) FROM n",
    "SELECT length(string_agg(t, repeat('x', 900000))) FROM n",
    "SELECT max(length(s)) FROM (SELECT string_agg(lpad(t, 1000), ',') OVER (ORDER BY v) AS s FROM n) AS q",
    "SELECT count(*) FROM (SELECT repeat('x', 900000 + v) AS t FROM n GROUP BY 1) AS q",
    "SELECT count(*) FROM n AS a JOIN n AS b ON repeat('x', 90000 + a.v) = repeat('x', 90000 + b.v)",
    "SELECT count(*) FROM n WHERE repeat('x', 900000 + v) LIKE '%y%'",
    "SELECT sum(cardinality(array_remove(string_to_array(repeat('x,', 1000000), ','), t || 'y'))) FROM n",
    "SELECT sum(cardinality((string_to_array(repeat('x,', 1000000), ','))[1:900000 + v])) FROM n",
    "SELECT sum(cardinality(a.t)) FROM n JOIN (SELECT 1 AS k, string_to_array(repeat('x,', 100000), ',') AS t) AS a ON a.k = 1 + n.v * 0",
    "SELECT length(array_agg(s.t ORDER BY n.v)::text) FROM n, (SELECT repeat('x', 50000000) AS t) AS s",
    "SELECT length(to_json(repeat(chr(1), 900000000))::text)",
    "SELECT ('[' || repeat('1,', 300000) || '1]')::jsonb @> ('[' || repeat('2,', 300000) || '2]')::jsonb",
    "CREATE TABLE m AS SELECT repeat('x', 900000 + v) AS t FROM n",
    "UPDATE n SET t = repeat('x', 900000 + v)",
    "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 1000000)))",
    "SELECT length(array_to_string(string_to_array(repeat('x,', 1000000), ','), repeat('y', 1000000)))",
    "SELECT length(regexp_replace(repeat('x', 1000000), '(.*)', repeat('\\1', 1000000)))",
    "SELECT length(('[' || repeat('1e16000,', 1000000) || '1]')::jsonb::text)",
    "WITH RECURSIVE r (n, t) AS (SELECT 1, repeat('x', 1000) UNION ALL SELECT n + 1, t || t FROM r WHERE n < 60) SELECT max(length(t)) FROM r",
];

#[tokio::test(flavor = "multi_thread")]
async fn values_that_no_memory_holds_end_no_server() {
    let mut server = Server::start_with(&["--threads", "2", "--memory-mb", MEMORY_MB], &[]);
    let (client, other, clock) = (server.connect().await, server.connect().await, SystemClock::new());
    let setup = "CREATE TABLE n AS SELECT g AS v, 'x' AS t FROM generate_series(1, 8000) AS g; VACUUM;
                 CREATE TABLE few AS SELECT 1 AS a; SET statement_timeout = '1s'";
    client.batch_execute(setup).await.expect("the tables are new");
    let (peak, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let watching = tokio::spawn(watch(server.pid(), Arc::clone(&peak), Arc::clone(&is_over)));
    for way in ["SET kiln.engine = on", "SET kiln.engine = off"] {
        client.batch_execute(way).await.expect("there is such a setting");
        for sql in STATEMENTS {
            if sql.contains("JOIN (") && way.ends_with("off") {
                // DataFusion's joins copy arrays without reserving memory.
                continue;
            }
            if let Err(error) = client.simple_query(sql).await {
                let code = error.code().unwrap_or_else(|| panic!("{way}: {sql} ended the session: {error}")).code();
                // Cancelled, out of memory, or a value longer than allowed.
                assert!(["57014", "53200", "54000", "22003"].contains(&code), "{way}: {sql}: {error:?}");
            }
            let counted = tokio::select! {
                counted = other.query_one("SELECT count(*) FROM few", &[]) => counted,
                () = clock.sleep(FREE_TIME_MAX) => panic!("{way}: {sql} keeps its thread"),
            };
            assert_eq!(counted.expect("others go on").get::<_, i64>(0), 1);
            let peak = peak.load(Ordering::Relaxed);
            assert!(peak < RESIDENT_BYTES_MAX, "{way}: {sql}: {} MB", peak >> 20);
            assert_eq!(server.exit_status().await, None, "{way}: {sql}");
        }
    }
    is_over.store(true, Ordering::Relaxed);
    watching.await.expect("it only reads");
    println!("{} MB at most", peak.load(Ordering::Relaxed) >> 20);
}

/// Records the peak memory of a process.
async fn watch(pid: u32, peak: Arc<AtomicU64>, is_over: Arc<AtomicBool>) {
    let clock = SystemClock::new();
    while !is_over.load(Ordering::Relaxed) {
        peak.fetch_max(resident_bytes(pid), Ordering::Relaxed);
        clock.sleep(Duration::from_millis(20)).await;
    }
}
