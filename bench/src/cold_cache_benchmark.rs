//! Measures queries with cold caches: each run on a server that has just started, and on systems that read Parquet
//! files directly.

use std::future::Future;

use tokio_postgres::Client;
use types::Clock;

use crate::compared_systems::SystemMode;
use crate::query_benchmark::{
    QueryOptions, disable_fragment_cache, report_query, run_timed, selected_queries, start_compared_systems,
};
use crate::query_report::{QueryReport, QueryResult};
use crate::{Error, result_comparison};

/// Starts servers, one after the other, over the tables that [`crate::prepare`] has loaded.
pub trait ServerStarter {
    /// Stops the previous server, starts a new one with empty caches, and returns a connection to it.
    fn start(&mut self) -> impl Future<Output = Result<Client, Error>> + Send;

    /// Stops the current server, which would otherwise use the CPU for a while after a query.
    fn stop(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Runs the queries, each run on a newly started server and on newly started systems.
///
/// The operating system's page cache is not cleared, for any of them.
pub async fn run(
    servers: &mut impl ServerStarter,
    options: &QueryOptions,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<QueryReport, Error> {
    let compared_systems: Vec<String> = start_compared_systems(options, SystemMode::ParquetFiles, say)
        .iter()
        .map(|system| system.name().to_owned())
        .collect();
    let mut entries = Vec::new();
    for number in selected_queries(options) {
        let sql = options.suite.queries()[number - 1];
        let mut entry = QueryResult { query: number, kiln: Vec::new(), rows: 0, compared_systems: Vec::new() };
        let mut answer = Vec::new();
        for _ in 0..options.runs.max(1) {
            let client = servers.start().await?;
            disable_fragment_cache(&client).await?;
            let time;
            (time, answer) = run_timed(&client, number, sql, clock).await?;
            entry.kiln.push(time);
        }
        servers.stop().await?;
        entry.rows = answer.len();
        for _ in 0..options.runs.max(1) {
            for system in &mut start_compared_systems(options, SystemMode::ParquetFiles, &mut |_| ()) {
                entry.add_system_result(
                    system.run(number, sql, 1, |theirs| result_comparison::compare(theirs, &answer)),
                );
            }
        }
        report_query(&entry, &answer, options, say);
        entries.push(entry);
    }
    Ok(QueryReport { suite: options.suite, scale: options.scale, tables: Vec::new(), compared_systems, entries })
}
