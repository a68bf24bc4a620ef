//! Queries on servers that remember nothing: each run by one that has just started, and by a peer that knows its Parquet files only by name.

use std::future::Future;

use tokio_postgres::Client;
use types::Clock;

use crate::Error;
use crate::peers::Mode;
use crate::report::{Entry, Report};
use crate::run::{Options, chosen, compare, start_peers, timed};

/// Servers over the tables that [`crate::prepare`] has loaded, one after the other.
pub trait Servers {
    /// A connection to a server that has just started, its caches empty; the one before has stopped.
    fn start(&mut self) -> impl Future<Output = Result<Client, Error>> + Send;
}

/// Runs the queries, each run on a server of its own; files may be in the operating system's memory, for all alike.
pub async fn run(
    servers: &mut impl Servers,
    options: &Options,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<Report, Error> {
    let mut peers = start_peers(options, Mode::Cold, say);
    let mut entries = Vec::new();
    for number in chosen(options) {
        let sql = options.suite.queries()[number - 1];
        let mut entry = Entry { query: number, kiln: Vec::new(), rows: 0, peers: Vec::new() };
        let mut answer = Vec::new();
        for _ in 0..options.runs.max(1) {
            let client = servers.start().await?;
            let time;
            (time, answer) = timed(&client, number, sql, clock).await?;
            entry.kiln.push(time);
        }
        compare(&mut entry, &mut peers, sql, &answer, options, say);
        entries.push(entry);
    }
    let peers = peers.into_iter().map(|peer| peer.name().to_owned()).collect();
    Ok(Report { suite: options.suite, scale: options.scale, tables: Vec::new(), peers, entries })
}
