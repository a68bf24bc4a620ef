//! Recovery time of a killed server, with a table of several gigabytes and almost as many unflushed rows as there can
//! be.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use super::process::Process;

/// Rows that one statement adds when the table is filled.
const STEP: u64 = 2_000_000;
/// Unflushed rows: just below the number that triggers a flush.
const FRESH: u64 = 99_000;
/// Unflushed rows that one statement adds.
const FRESH_STEP: u64 = 9_000;
/// Flushed rows that are updated and thereby become unflushed.
const CHANGED: u64 = 900;
const KILLS: usize = 3;

/// Fills the table, unless an earlier run has done so, kills the server repeatedly and prints the recovery times.
#[expect(clippy::print_stdout, reason = "the report is what the user asked for")]
pub(super) async fn run(data: &Path, gigabytes: f64) -> anyhow::Result<ExitCode> {
    let clock = SystemClock::new();
    let (mut process, client) = Process::start(data, &[]).await?;
    let (rows, bytes, shards) = fill(&client, gigabytes).await?;
    println!("{rows} rows, {:.2} GB in {shards} shards", bytes as f64 / 1e9);
    for kill in 0..KILLS {
        if kill == 0 {
            add_fresh(&process, rows).await?;
            println!("{FRESH} rows not flushed, {CHANGED} of them updates of flushed rows");
        }
        process.kill().await?;
        let begun = clock.monotonic();
        let (next, client) = Process::start(data, &[]).await?;
        let served = clock.monotonic() - begun;
        let found = number(&client, "SELECT count(*) FROM big").await?;
        let answered = clock.monotonic() - begun;
        let by_key = client.query_one(&format!("SELECT note FROM big WHERE id = {}", rows / 2), &[]).await;
        by_key.context("cannot read a row")?;
        let read = clock.monotonic() - begun;
        println!(
            "kill {}: serves after {}, first answer after {} ({found} rows), a flushed row by its key after {}",
            kill + 1,
            seconds(served),
            seconds(answered),
            seconds(read)
        );
        process = next;
    }
    process.kill().await?;
    Ok(ExitCode::SUCCESS)
}

/// Creates and fills the table, and returns the numbers of its rows, of the bytes of its shards, and of its shards.
async fn fill(client: &Client, gigabytes: f64) -> anyhow::Result<(u64, u64, u64)> {
    let create = "CREATE TABLE IF NOT EXISTS big (id bigint PRIMARY KEY, device integer NOT NULL, at timestamptz NOT NULL, \
                  value double precision, note text) SORT ON (id)";
    client.batch_execute(create).await.context("cannot create the table")?;
    loop {
        let rows = number(client, "SELECT count(*) FROM big WHERE id < 1000000000000").await?;
        let bytes = number(client, "SELECT coalesce(sum(bytes), 0)::bigint FROM sys.shard").await?;
        if gigabytes * 1e9 <= bytes as f64 {
            return Ok((rows, bytes, number(client, "SELECT count(*) FROM sys.shard").await?));
        }
        let insert = format!(
            "INSERT INTO big SELECT g, g % 1000, TIMESTAMPTZ '2026-01-01 00:00:00Z' + g * INTERVAL '1 second', random(), \
             md5(g::text) || md5((-g)::text) FROM generate_series({rows}, {}) AS g",
            rows + STEP - 1
        );
        client.batch_execute(&insert).await.context("cannot fill the table")?;
    }
}

/// Adds the unflushed rows.
async fn add_fresh(process: &Process, rows: u64) -> anyhow::Result<()> {
    let client = sql_client::connect(&process.url).await?;
    let first = 1_000_000_000_000;
    for start in (first..first + FRESH - CHANGED).step_by(usize::try_from(FRESH_STEP)?) {
        let end = (first + FRESH - CHANGED).min(start + FRESH_STEP);
        let insert = format!(
            "INSERT INTO big SELECT g, 1, TIMESTAMPTZ '2026-01-01 00:00:00Z', 0.5, md5(g::text) \
                 FROM generate_series({start}, {}) AS g",
            end - 1
        );
        client.batch_execute(&insert).await.context("cannot add rows")?;
    }
    let change = format!("UPDATE big SET value = 0 WHERE id >= {} AND id < {rows}", rows - CHANGED);
    client.batch_execute(&change).await.context("cannot change rows")?;
    Ok(())
}

async fn number(client: &Client, sql: &str) -> anyhow::Result<u64> {
    let row = client.query_one(sql, &[]).await.with_context(|| format!("cannot run {sql}"))?;
    Ok(u64::try_from(row.get::<_, i64>(0))?)
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
