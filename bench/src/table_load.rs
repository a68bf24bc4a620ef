//! Creates a benchmark's tables and loads them through COPY.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use tokio_postgres::Client;
use types::Clock;

use crate::{Error, Suite, generate};

/// Statistics of loading one table.
#[derive(Debug, Clone)]
pub struct LoadedTable {
    pub table: &'static str,
    pub rows: u64,
    pub bytes: u64,
    pub elapsed: Duration,
}

/// Creates the tables of `suite`, loads scale factor `scale`, and calls `progress` after each table.
pub async fn load(
    client: &Client,
    suite: Suite,
    scale: f64,
    clock: &dyn Clock,
    progress: impl FnMut(&LoadedTable),
) -> Result<Vec<LoadedTable>, Error> {
    let creating = |source| Error::Server { action: format!("creating the {suite} tables"), source };
    client.batch_execute(suite.create_table_sql()).await.map_err(creating)?;
    load_tables(client, suite, scale, clock, progress).await
}

/// Like [`load`], with tables distributed by their join keys.
pub async fn load_distributed(
    client: &Client,
    suite: Suite,
    scale: f64,
    clock: &dyn Clock,
    progress: impl FnMut(&LoadedTable),
) -> Result<Vec<LoadedTable>, Error> {
    let creating = |source| Error::Server { action: format!("creating the {suite} tables"), source };
    client.batch_execute(suite.create_table_sql()).await.map_err(creating)?;
    client.batch_execute(suite.distribute_sql()).await.map_err(creating)?;
    load_tables(client, suite, scale, clock, progress).await
}

async fn load_tables(
    client: &Client,
    suite: Suite,
    scale: f64,
    clock: &dyn Clock,
    mut progress: impl FnMut(&LoadedTable),
) -> Result<Vec<LoadedTable>, Error> {
    let mut loaded = Vec::new();
    for table in suite.tables() {
        let done = load_table(client, suite, table, scale, clock).await?;
        progress(&done);
        loaded.push(done);
    }
    Ok(loaded)
}

async fn load_table(
    client: &Client,
    suite: Suite,
    table: &'static str,
    scale: f64,
    clock: &dyn Clock,
) -> Result<LoadedTable, Error> {
    let failed = |source| Error::Server { action: format!("loading {table}"), source };
    let start = clock.monotonic();
    let parallelism = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let copy = client.copy_in(&format!("COPY {table} FROM STDIN (FORMAT csv)")).await.map_err(failed)?;
    let mut copy = std::pin::pin!(copy);
    let mut parts = std::pin::pin!(generate::generate_csv(suite, table, scale, parallelism));
    let mut bytes = 0;
    while let Some(part) = parts.next().await {
        let part = part?;
        bytes += part.len() as u64;
        copy.send(part).await.map_err(failed)?;
    }
    let rows = copy.finish().await.map_err(failed)?;
    Ok(LoadedTable { table, rows, bytes, elapsed: clock.monotonic() - start })
}
