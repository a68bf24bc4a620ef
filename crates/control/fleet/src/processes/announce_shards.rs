//! Announcements of new shards to workers, for pre-warming their caches. A worker that misses one opens the shard when
//! a task scans it.

use std::io;
use std::time::Duration;

use cluster_model::Worker;
use exchange::NewShards;
use tokio::io::AsyncWriteExt;

use super::WorkerProcesses;
use crate::join::{FrameError, ShardAnnouncement, write_message};
use crate::mutual_tls::with_timeout;
use crate::task_dialer::task_url;

/// Shards in one message, each of which takes some hundred bytes.
const SHARDS_PER_MESSAGE: usize = 32;
/// Time limit for sending all announcements to a worker.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(5);

impl WorkerProcesses {
    /// Announces new shards to a worker of a cluster whose parts are placed among `slots`. Completes when the worker
    /// has received them, or after a timeout. Shards that could not be announced count as dropped by the worker.
    pub async fn announce_shards(&self, worker: &Worker, slots: &[u32], new: Vec<NewShards>) {
        let all: usize = new.iter().map(NewShards::len).sum();
        let mut told = 0;
        let telling = self.send_announcements(worker, slots, new, &mut told);
        if let Err(error) = with_timeout(&self.clock, ANNOUNCE_TIMEOUT, telling).await {
            tracing::debug!(worker = %worker.id, %error, "could not announce all new shards to the worker");
        }
        if let Some(one) = self.state.lock().workers.get_mut(&worker.id) {
            one.unannounced_shards += (all - told) as u64;
        }
    }

    async fn send_announcements(
        &self,
        worker: &Worker,
        slots: &[u32],
        new: Vec<NewShards>,
        told: &mut usize,
    ) -> io::Result<()> {
        let url = task_url(worker).ok_or(io::ErrorKind::NotConnected)?;
        let mut stream = self.dialer.dial_for_announcements(&url).await?;
        for new in new.into_iter().flat_map(|new| new.split(SHARDS_PER_MESSAGE)) {
            let count = new.len();
            match write_message(&mut stream, &ShardAnnouncement { slots: slots.to_vec(), new }).await {
                Ok(()) => *told += count,
                // The table has too many columns for a message.
                Err(FrameError::TooLong { .. }) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        stream.shutdown().await
    }
}
