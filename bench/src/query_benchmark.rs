//! Runs one query benchmark: loads data, warms caches, runs Kiln and the compared systems, and compares the answers.

use std::path::PathBuf;
use std::time::Duration;

use futures::{TryStreamExt, pin_mut};
use tokio_postgres::{Client, SimpleQueryMessage};
use types::Clock;

use crate::compared_systems::{ComparedSystem, SystemMode};
use crate::query_report::{QueryReport, QueryResult};
use crate::result_comparison::{self, Row};
use crate::table_load::{LoadedTable, load, load_distributed};
use crate::{Error, Suite};

/// Polling interval, number of consecutive equal polls that mean idle, and maximum number of polls of the cache.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const UNCHANGED_POLLS: usize = 4;
const POLLS_MAX: usize = 1200;

/// Options of a query benchmark.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    pub suite: Suite,
    /// Scale factor: roughly gigabytes of data.
    pub scale: f64,
    /// Timed runs of each query, after the scan that warms the caches.
    pub runs: usize,
    /// Peers to compare with: `duckdb`, `datafusion`, `clickhouse`.
    pub compared_systems: Vec<String>,
    /// Numbers of the queries to run, from 1; empty for all.
    pub queries: Vec<usize>,
    /// Folder for the systems' data and their Python environment.
    pub workspace: PathBuf,
    /// True if the tables exist already, from an earlier run on the same data folder.
    pub loaded: bool,
    /// True to distribute the tables by their join keys.
    pub distributed: bool,
    /// Memory limit of a system in megabytes, where it has such a setting.
    pub memory_mb: Option<u64>,
    /// Number of rows of each answer to print.
    pub show_rows: usize,
}

/// Runs the benchmark over a connection to Kiln; `say` receives progress lines.
pub async fn run(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<QueryReport, Error> {
    let tables = prepare(client, options, clock, say).await?;
    let mut systems = start_compared_systems(options, SystemMode::LoadedTables, say);
    warm_caches(client, options.suite).await?;
    wait_until_idle(client, clock, say).await?;

    let mut entries = Vec::new();
    for number in selected_queries(options) {
        let sql = options.suite.queries()[number - 1];
        let mut entry = QueryResult { query: number, kiln: Vec::new(), rows: 0, compared_systems: Vec::new() };
        let mut answer = Vec::new();
        for _ in 0..options.runs.max(1) {
            let time;
            (time, answer) = run_timed(client, number, sql, clock).await?;
            entry.kiln.push(time);
        }
        compare_with_systems(&mut entry, &mut systems, sql, &answer, options, say);
        entries.push(entry);
    }
    let systems = systems.into_iter().map(|system| system.name().to_owned()).collect();
    Ok(QueryReport { suite: options.suite, scale: options.scale, tables, compared_systems: systems, entries })
}

/// Loads the tables, exports them to Parquet if there are systems, and returns statistics of the loaded tables.
pub async fn prepare(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<LoadedTable>, Error> {
    disable_fragment_cache(client).await?;
    let tables = if options.loaded { Vec::new() } else { load_tables(client, options, clock, say).await? };
    if !options.compared_systems.is_empty() {
        export_parquet(client, options).await?;
    }
    Ok(tables)
}

/// Disables the fragment cache, so that the server computes every answer in full.
pub(crate) async fn disable_fragment_cache(client: &Client) -> Result<(), Error> {
    let set = "SET kiln.fragment_cache = off";
    client.batch_execute(set).await.map_err(|source| Error::Server { action: set.to_owned(), source })
}

/// Runs a query and returns its time and answer.
pub(crate) async fn run_timed(
    client: &Client,
    number: usize,
    sql: &str,
    clock: &dyn Clock,
) -> Result<(Duration, Vec<Row>), Error> {
    let start = clock.monotonic();
    let answer =
        run_query(client, sql).await.map_err(|source| Error::Server { action: format!("query {number}"), source })?;
    Ok((clock.monotonic() - start, answer))
}

/// Runs a query on the systems, compares their answers with Kiln's, and reports the result.
pub(crate) fn compare_with_systems(
    entry: &mut QueryResult,
    systems: &mut [ComparedSystem],
    sql: &str,
    answer: &[Row],
    options: &QueryOptions,
    say: &mut dyn FnMut(&str),
) {
    for system in systems {
        let check = |theirs: &[Row]| result_comparison::compare(theirs, answer);
        entry.add_system_result(system.run(entry.query, sql, options.runs.max(1), check));
    }
    entry.rows = answer.len();
    report_query(entry, answer, options, say);
}

/// Reports the result of a query.
pub(crate) fn report_query(entry: &QueryResult, answer: &[Row], options: &QueryOptions, say: &mut dyn FnMut(&str)) {
    say(&entry.format_line());
    for row in answer.iter().take(options.show_rows) {
        let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        say(&format!("      {}", values.join(" | ")));
    }
}

/// Runs `sql` and returns its rows as text.
pub async fn run_query(client: &Client, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
    let messages = client.simple_query_raw(sql).await?;
    pin_mut!(messages);
    let mut rows = Vec::new();
    while let Some(message) = messages.try_next().await? {
        if let SimpleQueryMessage::Row(row) = message {
            rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
        }
    }
    Ok(rows)
}

async fn load_tables(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<LoadedTable>, Error> {
    let start = clock.monotonic();
    let mut loaded = |table: &LoadedTable| {
        say(&format!("loaded {:<24}{:>12} rows{}", table.table, table.rows, format_rate(table.bytes, table.elapsed)));
    };
    let tables = if options.distributed {
        load_distributed(client, options.suite, options.scale, clock, &mut loaded).await?
    } else {
        load(client, options.suite, options.scale, clock, &mut loaded).await?
    };
    say(&format!(
        "loaded {} at scale {} in {:.1} s",
        options.suite,
        options.scale,
        (clock.monotonic() - start).as_secs_f64()
    ));
    Ok(tables)
}

/// Scans each table in full once, which makes the data hot; `count(column)` would be answered from metadata.
async fn warm_caches(client: &Client, suite: Suite) -> Result<(), Error> {
    for table in suite.tables() {
        let sql = format!("SELECT * FROM {table}");
        let scan = format!("COPY ({sql}) TO STDOUT");
        let failed = |source| Error::Server { action: format!("warming {table}"), source };
        let rows = client.copy_out(&scan).await.map_err(failed)?;
        pin_mut!(rows);
        while rows.try_next().await.map_err(failed)?.is_some() {}
    }
    Ok(())
}

/// Waits until the background cache filler is idle, so that it does not disturb the systems' measurements.
pub(crate) async fn wait_until_idle(
    client: &Client,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let query = "SELECT coalesce(sum(blocks), 0)::int8 FROM sys.cache WHERE tier = 'memory'";
    let (mut kept, mut unchanged, mut left) = (-1_i64, 0, POLLS_MAX);
    while unchanged < UNCHANGED_POLLS && 0 < left {
        let failed = |source| Error::Server { action: "looking at the cache".to_owned(), source };
        let now: i64 = client.query_one(query, &[]).await.map_err(failed)?.get(0);
        unchanged = if now == kept { unchanged + 1 } else { 0 };
        (kept, left) = (now, left - 1);
        clock.sleep(POLL_INTERVAL).await;
    }
    if left == 0 {
        say("the cache is not at rest after some minutes: the compared systems are measured while it is being filled");
    }
    Ok(())
}

/// Writes each table to a Parquet file for the systems.
pub(crate) async fn export_parquet(client: &Client, options: &QueryOptions) -> Result<(), Error> {
    let folder = options.ensure_export_folder()?;
    for table in options.suite.tables() {
        let path = folder.join(format!("{table}.parquet"));
        let copy = format!("COPY {table} TO '{}' (FORMAT parquet)", path.display());
        let failed = |source| Error::Server { action: format!("exporting {table} for the compared systems"), source };
        client.batch_execute(&copy).await.map_err(failed)?;
    }
    Ok(())
}

/// Starts the systems; those that cannot start are reported and left out.
pub(crate) fn start_compared_systems(
    options: &QueryOptions,
    mode: SystemMode,
    say: &mut dyn FnMut(&str),
) -> Vec<ComparedSystem> {
    let mut systems = Vec::new();
    for name in &options.compared_systems {
        let started =
            options.ensure_export_folder().and_then(|folder| ComparedSystem::start(name, options, mode, &folder));
        match started {
            Ok(system) => {
                say(&format!("{name}: {}", system.description()));
                systems.push(system);
            }
            Err(missing) => say(&missing.to_string()),
        }
    }
    systems
}

impl QueryOptions {
    /// Returns the folder of the exported files, which is created if missing.
    pub(crate) fn ensure_export_folder(&self) -> Result<PathBuf, Error> {
        let folder = self.workspace.join(format!("{}-{}", self.suite, self.scale));
        std::fs::create_dir_all(&folder)
            .map_err(|source| Error::File { path: folder.display().to_string(), source })?;
        Ok(folder)
    }
}

/// Returns the numbers of the queries to run.
pub(crate) fn selected_queries(options: &QueryOptions) -> Vec<usize> {
    let all = 1..=options.suite.queries().len();
    if options.queries.is_empty() {
        all.collect()
    } else {
        all.filter(|number| options.queries.contains(number)).collect()
    }
}

fn format_rate(bytes: u64, elapsed: Duration) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let megabytes = bytes as f64 / 1e6;
    format!("{:>10.2} s{:>10.1} MB/s", elapsed.as_secs_f64(), megabytes / elapsed.as_secs_f64().max(1e-9))
}
