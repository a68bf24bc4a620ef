//! Measures loading the tables from CSV and Parquet files, on Kiln and on the compared systems, from the same files.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use tokio_postgres::Client;
use types::Clock;

use crate::compared_systems::SystemMode;
use crate::measure::MeasurementReport;
use crate::query_benchmark::{QueryOptions, export_parquet, start_compared_systems};
use crate::{Error, Suite, generate};

/// File formats, as COPY names them.
const FILE_FORMATS: [&str; 2] = ["csv", "parquet"];

/// Loads the tables from files of each format; existing tables are dropped.
pub async fn run(
    client: &Client,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<MeasurementReport, Error> {
    let folder = options.ensure_export_folder()?;
    for table in options.suite.tables() {
        write_csv(options, table, &folder.join(format!("{table}.csv"))).await?;
    }
    let mut report = MeasurementReport {
        benchmark: "load",
        server: String::new(),
        setting: format!("{} at scale {}", options.suite, options.scale),
        measurements: Vec::new(),
        figures: Vec::new(),
        violations: Vec::new(),
    };
    let mut own = Vec::new();
    for format in FILE_FORMATS {
        let (time, rows) = load(client, options.suite, format, &folder, clock).await?;
        say(&format!("kiln {format:<8}{:>9.2} s{rows:>14} rows", time.as_secs_f64()));
        report.figures.push((format!("kiln {format}, s"), time.as_secs_f64()));
        if own.iter().any(|(_, _, before)| *before != rows) {
            report.violations.push(format!("{format} files gave {rows} rows, others other ones"));
        }
        own.push((format, time, rows));
        if format == "csv" {
            export_parquet(client, options).await?;
        }
    }
    for system in &mut start_compared_systems(options, SystemMode::LoadFiles, say) {
        for (format, time, _) in &own {
            let theirs = system.load(format)?;
            let ratio = time.as_secs_f64() / theirs.as_secs_f64().max(1e-9);
            say(&format!("{} {format:<8}{:>9.2} s   kiln takes {ratio:.2}x", system.name(), theirs.as_secs_f64()));
            report.figures.push((format!("kiln/{} {format}", system.name()), ratio));
        }
    }
    Ok(report)
}

/// Recreates the tables and loads them one after the other; returns the loading time and the number of rows.
async fn load(
    client: &Client,
    suite: Suite,
    format: &str,
    folder: &Path,
    clock: &dyn Clock,
) -> Result<(Duration, u64), Error> {
    let tables: Vec<&str> = suite.tables().collect();
    let anew = format!("DROP TABLE IF EXISTS {}; {}", tables.join(", "), suite.create_table_sql());
    client
        .batch_execute(&anew)
        .await
        .map_err(|source| Error::Server { action: format!("creating the {suite} tables"), source })?;
    let (start, mut rows) = (clock.monotonic(), 0);
    for table in tables {
        let path = folder.join(format!("{table}.{format}"));
        let copy = format!("COPY {table} FROM '{}' (FORMAT {format})", path.display());
        let failed = |source| Error::Server { action: format!("loading {table} from {format}"), source };
        rows += client.execute(&copy, &[]).await.map_err(failed)?;
    }
    Ok((clock.monotonic() - start, rows))
}

/// Writes a table's rows as CSV, unless an earlier run has done so.
async fn write_csv(options: &QueryOptions, table: &'static str, path: &Path) -> Result<(), Error> {
    if path.exists() {
        return Ok(());
    }
    let failed = |source| Error::File { path: path.display().to_string(), source };
    let parallelism = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    // Written under another name first, so that an interrupted run leaves no incomplete file.
    let part = path.with_extension("part");
    let mut file = File::create(&part).map_err(failed)?;
    let mut rows = std::pin::pin!(generate::generate_csv(options.suite, table, options.scale, parallelism));
    while let Some(bytes) = rows.next().await {
        file.write_all(&bytes?).map_err(failed)?;
    }
    drop(file);
    std::fs::rename(&part, path).map_err(failed)
}
