//! Joins with a huge output from few rows: one batch would take days, and other statements are answered meanwhile.

use std::time::Duration;

use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;
use types::{Clock, SystemClock};

use crate::server::Server;

/// Time after which a statement hangs; generous for slow machines.
const HANG_TIMEOUT: Duration = Duration::from_secs(300);

/// Queries over 8 * 10^12 joined rows, which take days.
const ENDLESS: [&str; 4] = [
    "SELECT sum(a.i * b.i + c.i) FROM many a, many b, many c",
    "SELECT a.i % 7, count(*) FROM many a, many b, many c GROUP BY 1",
    "SELECT count(*) FROM many a JOIN many b ON a.i <> b.i JOIN many c ON b.i <> c.i",
    "SELECT count(*) FROM many a WHERE EXISTS (SELECT FROM many b, many c WHERE a.i + b.i + c.i < 0)",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_becomes_millions_holds_no_thread() {
    let (server, clock) = (Server::start_with(&["--threads", "2"], &[]), SystemClock::new());
    let onlooker = server.connect().await;
    let setup = "CREATE TABLE many (i int8); INSERT INTO many SELECT g FROM generate_series(1, 20000) g; VACUUM many";
    onlooker.batch_execute(setup).await.expect("a table is made");
    for engine in ["on", "off"] {
        let (mut busy, mut cancels) = (Vec::new(), Vec::new());
        for query in ENDLESS {
            let client = server.connect().await;
            client.batch_execute(&format!("SET kiln.engine = {engine}")).await.expect("the setting is known");
            cancels.push(client.cancel_token());
            busy.push(tokio::spawn(async move { (query, client.batch_execute(query).await) }));
        }
        let counting = async {
            for _ in 0..20 {
                let row = onlooker.query_one("SELECT count(*) FROM many WHERE i <= 100", &[]).await;
                assert_eq!(row.expect("others are answered").get::<_, i64>(0), 100);
                clock.sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(HANG_TIMEOUT, counting).await.expect("others do not wait");
        for cancel in cancels {
            cancel.cancel_query(NoTls).await.expect("the server listens");
        }
        for ending in busy {
            let (query, ended) =
                tokio::time::timeout(HANG_TIMEOUT, ending).await.expect("a cancel is heeded").expect("no panic");
            let error = ended.expect_err(query);
            assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{query}: {error:?}");
        }
    }
}
