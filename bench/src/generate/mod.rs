//! Generates benchmark data as CSV, in parallel and delivered in order.

mod tpcds;
mod tpch;

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};

use crate::{Error, Suite};

/// Rows of one part: a few megabytes, so that parts in flight use little memory and every core has work.
const PART_ROWS: u64 = 50_000;

/// Streams the rows of `table` at scale factor `scale` as CSV without a header, in the generator's order, cut at line
/// ends.
///
/// At most `parallelism` parts are generated at once; a slow consumer slows the generator down.
pub fn generate_csv(
    suite: Suite,
    table: &'static str,
    scale: f64,
    parallelism: usize,
) -> impl Stream<Item = Result<Bytes, Error>> {
    let part_count = match suite {
        Suite::Tpch => tpch::part_count(table, scale, PART_ROWS),
        Suite::Tpcds => tpcds::part_count(table, scale, PART_ROWS),
    };
    let (part_count, failure) = match part_count {
        Ok(count) => (count, None),
        Err(error) => (0, Some(Err(error))),
    };
    let parts = stream::iter(0..part_count)
        .map(move |part| async move {
            let made = tokio::task::spawn_blocking(move || match suite {
                Suite::Tpch => tpch::generate_part(table, scale, part, part_count),
                Suite::Tpcds => tpcds::generate_part(table, scale, part, part_count),
            });
            let csv = made.await.map_err(|error| Error::Data {
                table: table.to_owned(),
                scale,
                reason: error.to_string(),
            })??;
            Ok(Bytes::from(csv))
        })
        .buffered(parallelism);
    stream::iter(failure).chain(parts)
}
