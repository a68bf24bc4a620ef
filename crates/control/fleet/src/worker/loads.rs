//! What the instance tells of new shards: it waits here until they are opened and read ahead, one message after the other. Where too many wait they are left
//! out.

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

/// Messages that may wait.
pub(super) const WAITING_MAX: usize = 64;

/// Hears all that is said over a connection.
///
/// # Errors
/// Where the connection breaks, or what comes cannot be understood.
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

/// Has the worker of this slot open and read what was told, for as long as somebody can tell more.
pub(super) async fn read_ahead(worker: Worker, (cluster, slot): (ClusterId, u32), mut told: mpsc::Receiver<Loaded>) {
    while let Some(Loaded { slots, new }) = told.recv().await {
        let placement = Placement::new(cluster, slots);
        let is_own = |piece: PartKey| placement.owner(Part::new(piece.shard, piece.piece())) == Some(slot);
        worker.read_ahead(&new, is_own).await;
    }
}
