//! Queries on servers that remember nothing: each run by one that has just started, and by a peer that knows its Parquet files only by name.

use std::future::Future;

use tokio_postgres::Client;
use types::Clock;

use crate::peers::Mode;
use crate::report::{Entry, Report};
use crate::run::{Options, chosen, compute_all, show, start_peers, timed};
use crate::{Error, answers};

/// Servers over the tables that [`crate::prepare`] has loaded, one after the other.
pub trait Servers {
    /// A connection to a server that has just started, its caches empty; the one before has stopped.
    fn start(&mut self) -> impl Future<Output = Result<Client, Error>> + Send;

    /// Stops the last one: it is busy for a while with what it has read.
    fn stop(&mut self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Runs the queries, each run on a server and on peers of its own that have just started: memory is as new to all of them. Files may be in
/// the operating system's, for all alike.
pub async fn run(
    servers: &mut impl Servers,
    options: &Options,
    clock: &dyn Clock,
    say: &mut dyn FnMut(&str),
) -> Result<Report, Error> {
    let peers: Vec<String> = start_peers(options, Mode::Cold, say).iter().map(|peer| peer.name().to_owned()).collect();
    let mut entries = Vec::new();
    for number in chosen(options) {
        let sql = options.suite.queries()[number - 1];
        let mut entry = Entry { query: number, kiln: Vec::new(), rows: 0, peers: Vec::new() };
        let mut answer = Vec::new();
        for _ in 0..options.runs.max(1) {
            let client = servers.start().await?;
            compute_all(&client).await?;
            let time;
            (time, answer) = timed(&client, number, sql, clock).await?;
            entry.kiln.push(time);
        }
        servers.stop().await?;
        entry.rows = answer.len();
        for _ in 0..options.runs.max(1) {
            for peer in &mut start_peers(options, Mode::Cold, &mut |_| ()) {
                entry.add(peer.run(number, sql, 1, |theirs| answers::compare(theirs, &answer)));
            }
        }
        show(&entry, &answer, options, say);
        entries.push(entry);
    }
    Ok(Report { suite: options.suite, scale: options.scale, tables: Vec::new(), peers, entries })
}
