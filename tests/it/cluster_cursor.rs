//! A cursor left open on a cluster of worker processes, with far more rows than buffers hold, blocks no other
//! statement.

use crate::cluster::wait_until;
use crate::server::Server;

/// About 300 MB of hardly compressible rows: more than connections and buffers hold.
const WIDE: &str = "CREATE TABLE wide AS SELECT i, md5(i::text) || md5((i + 1)::text) || md5((i + 2)::text) || md5((i + 3)::text) \
                    || md5((i + 4)::text) || md5((i + 5)::text) AS v FROM generate_series(1, 1500000) AS g(i)";
const CLUSTER: &str = "CREATE CLUSTER two WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL)";
const ON_WORKERS: &str = "USE CLUSTER two; SET min_parallel_table_scan_size = 0; SET statement_timeout = '30s'";

#[tokio::test(flavor = "multi_thread")]
async fn an_open_cursor_holds_up_no_other_statement() {
    let server = Server::start();
    let (client, cursor) = (server.connect().await, server.connect().await);
    client.batch_execute(WIDE).await.expect("the table is new");
    client.batch_execute(CLUSTER).await.expect("a cluster can be made");
    wait_until(&client, "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'two' AND state = 'ready'").await;
    for client in [&client, &cursor] {
        client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
    }
    cursor.batch_execute("BEGIN; DECLARE c CURSOR FOR SELECT * FROM wide; FETCH 1 FROM c").await.expect("it runs");
    // By the time some of these have run, everything on its way to the cursor is blocked.
    for _ in 0..20 {
        let sql = "SELECT count(*), sum(length(v)), min(v) FROM wide";
        let row = client.query_one(sql, &[]).await.expect("nobody holds it up");
        assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (1_500_000, 1_500_000 * 192));
    }
    let row = cursor.query_one("FETCH 1 FROM c", &[]).await.expect("it goes on");
    assert_eq!(row.get::<_, &str>(1).len(), 192);
    cursor.batch_execute("MOVE FORWARD ALL IN c; COMMIT").await.expect("it ends");
}
