//! Announcements of new shards: a bounded queue of messages, and the task that opens the shards and reads them ahead.
//!
//! Messages that do not fit into the queue are dropped.

use std::io;
use std::sync::Arc;

use cluster_model::ClusterId;
use cluster_model::placement::{Part, Placement};
use exchange::Worker;
use scan::PartKey;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_rustls::server::TlsStream;
use types::Clock;

use crate::identity::within;
use crate::join::{Loaded, SILENCE_MAX, read};

/// Capacity of the queue, in messages.
pub(super) const WAITING_MAX: usize = 64;

/// Receives all announcements of a connection into the queue.
///
/// # Errors
/// The connection breaks or times out, or a message is malformed.
pub(super) async fn hear(
    worker: &Worker,
    mut from: TlsStream<TcpStream>,
    waiting: &mpsc::Sender<Loaded>,
    clock: &Arc<dyn Clock>,
) -> io::Result<()> {
    loop {
        let next = async { read::<Loaded>(&mut from).await.map_err(io::Error::other) };
        let Some(loaded) = within(clock, SILENCE_MAX, next).await? else { return Ok(()) };
        if let Err(TrySendError::Full(left) | TrySendError::Closed(left)) = waiting.try_send(loaded) {
            worker.drop_ahead(&left.new);
        }
    }
}

/// Opens announced shards and reads the blocks that this slot owns, until all senders are gone.
pub(super) async fn read_ahead(worker: Worker, (cluster, slot): (ClusterId, u32), mut told: mpsc::Receiver<Loaded>) {
    while let Some(Loaded { slots, new }) = told.recv().await {
        let placement = Placement::new(cluster, slots);
        let is_own = |piece: PartKey| placement.owner(Part::new(piece.shard, piece.piece())) == Some(slot);
        worker.read_ahead(&new, is_own).await;
    }
}
