//! Announcements of new shards: a bounded queue of messages, and the task that opens the shards and reads them ahead.
//!
//! Messages that do not fit into the queue are dropped.

use std::io;
use std::sync::Arc;

use cluster_model::ClusterId;
use cluster_model::placement::{Part, Placement};
use exchange::Worker;
use scan::PartLocation;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_rustls::server::TlsStream;
use types::Clock;

use crate::join::{SILENCE_TIMEOUT, ShardAnnouncement, read_message};
use crate::mutual_tls::with_timeout;

/// Capacity of the queue, in messages.
pub(super) const QUEUE_LENGTH: usize = 64;

/// Receives all announcements of a connection into the queue.
///
/// # Errors
/// The connection breaks or times out, or a message is malformed.
pub(super) async fn receive_announcements(
    worker: &Worker,
    mut from: TlsStream<TcpStream>,
    waiting: &mpsc::Sender<ShardAnnouncement>,
    clock: &Arc<dyn Clock>,
) -> io::Result<()> {
    loop {
        let next = async { read_message::<ShardAnnouncement>(&mut from).await.map_err(io::Error::other) };
        let Some(loaded) = with_timeout(clock, SILENCE_TIMEOUT, next).await? else { return Ok(()) };
        if let Err(TrySendError::Full(left) | TrySendError::Closed(left)) = waiting.try_send(loaded) {
            worker.skip_warming(&left.new);
        }
    }
}

/// Opens announced shards and reads the blocks that this slot owns, until all senders are gone.
pub(super) async fn read_ahead(
    worker: Worker,
    (cluster, slot): (ClusterId, u32),
    mut told: mpsc::Receiver<ShardAnnouncement>,
) {
    while let Some(ShardAnnouncement { slots, new }) = told.recv().await {
        let placement = Placement::new(cluster, slots);
        let is_own =
            |piece: PartLocation| placement.owner(Part::new(piece.shard, piece.ownership_unit())) == Some(slot);
        worker.warm_cache(&new, is_own).await;
    }
}
