//! Recovery time of a killed server, with a table of several gigabytes and almost as many unflushed rows as there can
//! be.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use super::server_process::ServerProcess;

/// Rows that one statement adds when the table is filled.
const FILL_STEP_ROWS: u64 = 2_000_000;
/// Unflushed rows: just below the number that triggers a flush.
const UNFLUSHED_ROWS: u64 = 99_000;
/// Unflushed rows that one statement adds.
const UNFLUSHED_STEP_ROWS: u64 = 9_000;
/// Flushed rows that are updated and thereby become unflushed.
const UPDATED_ROWS: u64 = 900;
const KILL_COUNT: usize = 3;

/// Fills the table, unless an earlier run has done so, kills the server repeatedly and prints the recovery times.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(super) async fn run(data: &Path, gigabytes: f64) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::new();
    let (mut process, client) = ServerProcess::start(data, &[]).await?;
    let (rows, bytes, shards) = fill_table(&client, gigabytes).await?;
    println!("{rows} rows, {:.2} GB in {shards} shards", bytes as f64 / 1e9);
    for kill in 0..KILL_COUNT {
        if kill == 0 {
            add_unflushed(&process, rows).await?;
            println!("{UNFLUSHED_ROWS} rows not flushed, {UPDATED_ROWS} of them updates of flushed rows");
        }
        process.kill().await?;
        let begun = clock.monotonic();
        let (next, client) = ServerProcess::start(data, &[]).await?;
        let served = clock.monotonic() - begun;
        let found = query_integer(&client, "SELECT count(*) FROM big").await?;
        let answered = clock.monotonic() - begun;
        let by_key = client.query_one(&format!("SELECT note FROM big WHERE id = {}", rows / 2), &[]).await;
        by_key.context("cannot read a row")?;
        let read = clock.monotonic() - begun;
        println!(
            "kill {}: serves after {}, first answer after {} ({found} rows), a flushed row by its key after {}",
            kill + 1,
            format_seconds(served),
            format_seconds(answered),
            format_seconds(read)
        );
        process = next;
    }
    process.kill().await?;
    Ok(ExitCode::SUCCESS)
}

/// Creates and fills the table, and returns the numbers of its rows, of the bytes of its shards, and of its shards.
async fn fill_table(client: &Client, gigabytes: f64) -> anyhow::Result<(u64, u64, u64)> {
    let create = "CREATE TABLE IF NOT EXISTS big (id bigint PRIMARY KEY, device integer NOT NULL, at timestamptz NOT NULL, \
                  value double precision, note text) SORT ON (id)";
    client.batch_execute(create).await.context("cannot create the table")?;
    loop {
        let rows = query_integer(client, "SELECT count(*) FROM big WHERE id < 1000000000000").await?;
        let bytes = query_integer(client, "SELECT coalesce(sum(bytes), 0)::bigint FROM sys.shard").await?;
        if gigabytes * 1e9 <= bytes as f64 {
            return Ok((rows, bytes, query_integer(client, "SELECT count(*) FROM sys.shard").await?));
        }
        let insert = format!(
            "INSERT INTO big SELECT g, g % 1000, TIMESTAMPTZ '2026-01-01 00:00:00Z' + g * INTERVAL '1 second', random(), \
             md5(g::text) || md5((-g)::text) FROM generate_series({rows}, {}) AS g",
            rows + FILL_STEP_ROWS - 1
        );
        client.batch_execute(&insert).await.context("cannot fill the table")?;
    }
}

/// Adds the unflushed rows.
async fn add_unflushed(process: &ServerProcess, rows: u64) -> anyhow::Result<()> {
    let client = sql_client::connect(&process.url).await?;
    let first = 1_000_000_000_000;
    for start in (first..first + UNFLUSHED_ROWS - UPDATED_ROWS).step_by(usize::try_from(UNFLUSHED_STEP_ROWS)?) {
        let end = (first + UNFLUSHED_ROWS - UPDATED_ROWS).min(start + UNFLUSHED_STEP_ROWS);
        let insert = format!(
            "INSERT INTO big SELECT g, 1, TIMESTAMPTZ '2026-01-01 00:00:00Z', 0.5, md5(g::text) \
                 FROM generate_series({start}, {}) AS g",
            end - 1
        );
        client.batch_execute(&insert).await.context("cannot add rows")?;
    }
    let change = format!("UPDATE big SET value = 0 WHERE id >= {} AND id < {rows}", rows - UPDATED_ROWS);
    client.batch_execute(&change).await.context("cannot change rows")?;
    Ok(())
}

async fn query_integer(client: &Client, sql: &str) -> anyhow::Result<u64> {
    let row = client.query_one(sql, &[]).await.with_context(|| format!("cannot run {sql}"))?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

fn format_seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
