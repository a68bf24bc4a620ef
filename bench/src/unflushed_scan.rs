//! Measures the cost of unflushed rows in a scan: one query over a flushed table and over tables with some unflushed
//! rows.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::{Client, SimpleQueryMessage};
use types::Clock;

use crate::Error;
use crate::measure::MeasurementReport;
use crate::measure::server_connection::{Server, run_statements};
use crate::query_benchmark::disable_fragment_cache;

/// Shares of unflushed rows: label, and `n` for one row in `n`.
const UNFLUSHED_SHARES: [(&str, u64); 2] = [("2 %", 50), ("50 %", 2)];
/// Rows per statement when unflushed rows are inserted.
const INSERT_BATCH_ROWS: u64 = 50_000;
/// Runs per query; the fastest counts.
const RUN_COUNT: usize = 7;
const QUERY: &str = "SELECT a % 10, count(*), sum(a), avg(b), sum(c), max(d) FROM";

/// Measures tables of `count` rows; the server must not flush during the run.
pub async fn run(
    server: &Server,
    count: u64,
    clock: &Arc<dyn Clock>,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let client = server.connect().await?;
    disable_fragment_cache(&client).await?;
    let mut report = MeasurementReport {
        benchmark: "unsettled",
        server: server.version.clone(),
        setting: format!("{count} rows"),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    create_table(&client, "settled").await?;
    insert_rows(&client, "settled", 0..count, 0).await?;
    let (settled, expected) = fastest_run(&client, "settled", clock).await?;
    say(&format!("settled                      {:>8.1} ms", millis(settled)));
    for (share, one_in) in UNFLUSHED_SHARES {
        create_table(&client, "added").await?;
        insert_rows(&client, "added", 0..count - count / one_in, 0).await?;
        let mut start = count - count / one_in;
        while start < count {
            let end = count.min(start + INSERT_BATCH_ROWS);
            insert_rows(&client, "added", start..end, INSERT_BATCH_ROWS).await?;
            start = end;
        }
        create_table(&client, "changed").await?;
        insert_rows(&client, "changed", 0..count, 0).await?;
        let change = format!("UPDATE changed SET a = a WHERE id % {one_in} = 0");
        run_statements(&client, "changing rows", &change).await?;
        for table in ["added", "changed"] {
            let (time, found) = fastest_run(&client, table, clock).await?;
            if found != expected {
                report.violations.push(format!("{table} does not answer what settled does"));
            }
            let ratio = time.as_secs_f64() / settled.as_secs_f64();
            say(&format!("{share:>4} of the rows {table:<8}    {:>8.1} ms   {ratio:>6.2}x", millis(time)));
            report.figures.push((format!("{share} {table}"), ratio));
        }
    }
    Ok(report)
}

async fn create_table(client: &Client, table: &str) -> Result<(), Error> {
    let sql = format!(
        "DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id bigint PRIMARY KEY, a integer NOT NULL, b double precision, \
         c numeric(12,2), d date, note text)"
    );
    run_statements(client, "creating a table", &sql).await
}

/// Inserts rows; statements of up to `fresh_max` rows write unflushed rows instead of Parquet files.
async fn insert_rows(client: &Client, table: &str, ids: std::ops::Range<u64>, fresh_max: u64) -> Result<(), Error> {
    let sql = format!("SET kiln.direct_load_rows = {fresh_max}");
    run_statements(client, "saying which rows become shards", &sql).await?;
    let sql = format!(
        "INSERT INTO {table} SELECT g, g % 1000, g * 0.5, g % 10000, DATE '2020-01-01' + (g % 3000)::int, 'note ' || g \
         FROM generate_series({}, {}) AS g",
        ids.start,
        ids.end - 1
    );
    run_statements(client, "filling a table", &sql).await
}

/// Returns the fastest time of the query, and its answer.
async fn fastest_run(client: &Client, table: &str, clock: &Arc<dyn Clock>) -> Result<(Duration, Vec<String>), Error> {
    let query = format!("{QUERY} {table} GROUP BY 1 ORDER BY 1");
    let mut least = Duration::MAX;
    let mut answer = Vec::new();
    for _ in 0..RUN_COUNT {
        let start = clock.monotonic();
        let told = client.simple_query(&query).await;
        let told = told.map_err(|source| Error::Server { action: query.clone(), source })?;
        answer = told.iter().filter_map(row_text).collect();
        least = least.min(clock.monotonic() - start);
    }
    Ok((least, answer))
}

fn row_text(told: &SimpleQueryMessage) -> Option<String> {
    let SimpleQueryMessage::Row(row) = told else { return None };
    let cells: Vec<&str> = (0..row.len()).map(|cell| row.get(cell).unwrap_or("")).collect();
    Some(cells.join("|"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
