//! Cache hand-over: a worker that will own parts of shards fetches their warm blocks from the present owners first.
//!
//! The new owner connects to each of the others and sends its slot and the next placement. It receives blocks until
//! there are no more: each as its number of rows and the length of its record (both 32 bits, big-endian), then the
//! record. Eight zero bytes end the stream. Blocks that are lost on the way are read from the storage later.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster_model::ClusterId;
use cluster_model::placement::{Part, Placement};
use exchange::Worker;
use scan::PartLocation;
use serde::{Deserialize, Serialize};
use shards::BlockLocation;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use types::Clock;
use url::Url;

use crate::join::{HandoverReport, HandoverRequest, read_message, write_message};
use crate::mutual_tls::{CertificateName, Credentials, with_timeout};
use crate::task_dialer::parse_task_url;

/// Longest valid record of a block.
const RECORD_BYTES_MAX: usize = 64 << 20;
/// Time limit for each read and write.
const IO_TIMEOUT: Duration = Duration::from_secs(10);
/// Most bytes of blocks in memory that one worker sends, so that a hand-over ends in reasonable time.
const SENT_BYTES_MAX: u64 = 4 << 30;

/// Request for the blocks that a slot will own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BlocksRequest {
    cluster: ClusterId,
    slot: u32,
    /// Slots of the next placement.
    slots: Vec<u32>,
}

/// Sends a worker the warm blocks of this cache that it will own.
///
/// # Errors
/// The connection breaks or times out, or the request is malformed.
pub(super) async fn send_blocks(
    worker: &Worker,
    mut to: TlsStream<TcpStream>,
    clock: &Arc<dyn Clock>,
) -> io::Result<()> {
    let wanted = with_timeout(clock, IO_TIMEOUT, async {
        read_message::<BlocksRequest>(&mut to).await.map_err(io::Error::other)
    })
    .await?;
    let Some(BlocksRequest { cluster, slot, slots }) = wanted else { return Ok(()) };
    let placement = Placement::new(cluster, slots);
    let will_own = |place: BlockLocation| {
        let part = PartLocation { shard: place.shard, row_group: place.row_group as usize, row: place.first_row };
        placement.owner(Part::new(part.shard, part.ownership_unit())) == Some(slot)
    };
    for block in worker.hot_blocks(will_own, SENT_BYTES_MAX) {
        let Some((rows, record)) = block.to_record() else { continue };
        let giving = async {
            to.write_u32(u32::try_from(rows).map_err(io::Error::other)?).await?;
            to.write_u32(u32::try_from(record.len()).map_err(io::Error::other)?).await?;
            to.write_all(&record).await
        };
        with_timeout(clock, IO_TIMEOUT, giving).await?;
    }
    let ending = async {
        to.write_u64(0).await?;
        to.shutdown().await
    };
    with_timeout(clock, IO_TIMEOUT, ending).await
}

/// Fetches blocks from all present owners concurrently; skips those that do not answer.
pub(super) async fn fetch_blocks(
    worker: Worker,
    credentials: Arc<Credentials>,
    (cluster, slot): (ClusterId, u32),
    told: HandoverRequest,
    clock: Arc<dyn Clock>,
) -> HandoverReport {
    let wanted = BlocksRequest { cluster, slot, slots: told.slots };
    let (worker, credentials, wanted, clock) = (&worker, &credentials, &wanted, &clock);
    let each = told.from.iter().map(|from| async move {
        let mut got = (0, 0);
        if let Err(error) = fetch_from(worker, credentials, from, wanted, clock, &mut got).await {
            tracing::warn!(%error, from, "could not fetch all warm cache blocks from another worker");
        }
        got
    });
    let got = futures::future::join_all(each).await;
    let (blocks, bytes) = got.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    tracing::info!(blocks, bytes, "warmed the cache from other workers");
    HandoverReport { number: told.number, blocks, bytes }
}

/// Fetches blocks from one worker; counts in `got` the blocks and bytes that were added to the cache.
async fn fetch_from(
    worker: &Worker,
    credentials: &Credentials,
    from: &str,
    wanted: &BlocksRequest,
    clock: &Arc<dyn Clock>,
    got: &mut (u64, u64),
) -> io::Result<()> {
    let url = Url::parse(from).map_err(io::Error::other)?;
    let Some((address, id)) = parse_task_url(&url) else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut stream = credentials.dial_for_blocks(address, CertificateName::Worker(id), clock).await?;
    write_message(&mut stream, wanted).await.map_err(io::Error::other)?;
    loop {
        let next = async {
            let (rows, bytes) = (stream.read_u32().await? as usize, stream.read_u32().await? as usize);
            if RECORD_BYTES_MAX < bytes {
                return Err(io::Error::other(format!(
                    "a cache block of {bytes} bytes exceeds {RECORD_BYTES_MAX} bytes"
                )));
            }
            let mut record = vec![0; bytes];
            stream.read_exact(&mut record).await?;
            Ok((rows, Bytes::from(record)))
        };
        let (rows, record) = with_timeout(clock, IO_TIMEOUT, next).await?;
        if record.is_empty() {
            return Ok(());
        }
        if worker.receive_block(rows, &record) {
            *got = (got.0 + 1, got.1 + record.len() as u64);
        }
    }
}
