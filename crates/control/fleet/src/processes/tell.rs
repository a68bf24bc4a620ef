//! Telling workers of shards that tables have since lately. What does not reach them they find when they are asked for it.

use std::io;
use std::time::Duration;

use cluster_model::Worker;
use exchange::NewShards;
use tokio::io::AsyncWriteExt;

use super::Processes;
use crate::dial::task_url;
use crate::identity::within;
use crate::join::{FrameError, Loaded, write};

/// Shards of a message: it has some hundred bytes of each.
const SHARDS_OF_MESSAGE: usize = 32;
/// A worker that has not taken all of it after so long is told no more.
const TELL_TIME_MAX: Duration = Duration::from_secs(5);

impl Processes {
    /// Tells a worker of new shards, parts being placed among `slots`; completes when it has heard it, or some seconds later. What it could not be told counts as
    /// what it has left out.
    pub async fn tell_loaded(&self, worker: &Worker, slots: &[u32], new: Vec<NewShards>) {
        let all: usize = new.iter().map(NewShards::len).sum();
        let mut told = 0;
        let telling = self.tell_all(worker, slots, new, &mut told);
        if let Err(error) = within(&self.clock, TELL_TIME_MAX, telling).await {
            tracing::debug!(worker = %worker.id, %error, "it is not told of all new shards");
        }
        if let Some(one) = self.hosted.lock().workers.get_mut(&worker.id) {
            one.untold += (all - told) as u64;
        }
    }

    async fn tell_all(&self, worker: &Worker, slots: &[u32], new: Vec<NewShards>, told: &mut usize) -> io::Result<()> {
        let url = task_url(worker).ok_or(io::ErrorKind::NotConnected)?;
        let mut stream = self.dialer.dial_for_loads(&url).await?;
        for new in new.into_iter().flat_map(|new| new.in_lists(SHARDS_OF_MESSAGE)) {
            let count = new.len();
            match write(&mut stream, &Loaded { slots: slots.to_vec(), new }).await {
                Ok(()) => *told += count,
                // Its table has very many columns.
                Err(FrameError::TooLong { .. }) => {}
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        stream.shutdown().await
    }
}
