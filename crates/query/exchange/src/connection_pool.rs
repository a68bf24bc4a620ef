//! Open connections to workers: each is registered for as long as it lasts, so that nothing remains of a worker that is
//! gone.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use datafusion_distributed::grpc::BoxCloneSyncChannel;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use url::Url;

use crate::worker_connections::ByteStream;

/// Registry of open channels, by worker.
#[derive(Default)]
pub(super) struct ChannelPool(Mutex<PoolState>);

#[derive(Default)]
struct PoolState {
    /// Channel and its number, by worker.
    by_worker: HashMap<Url, (u64, BoxCloneSyncChannel)>,
    /// Number of the newest channel.
    last_number: u64,
}

impl ChannelPool {
    /// Returns the channel to a worker. If there is none, `make` opens one; it is removed from the registry when the
    /// handle passed to `make` ends.
    pub(super) fn get_or_open<E>(
        self: &Arc<Self>,
        worker: &Url,
        make: impl FnOnce(Arc<ChannelRegistration>) -> Result<BoxCloneSyncChannel, E>,
    ) -> Result<BoxCloneSyncChannel, E> {
        let mut channels = self.0.lock();
        if let Some((_, open)) = channels.by_worker.get(worker) {
            return Ok(open.clone());
        }
        channels.last_number += 1;
        let number = channels.last_number;
        let made = make(Arc::new(ChannelRegistration { pool: Arc::downgrade(self), worker: worker.clone(), number }))?;
        channels.by_worker.insert(worker.clone(), (number, made.clone()));
        Ok(made)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().by_worker.len()
    }
}

/// Registration of a channel, held by its connection.
pub(super) struct ChannelRegistration {
    pool: Weak<ChannelPool>,
    worker: Url,
    number: u64,
}

impl ChannelRegistration {
    /// Removes the channel from the registry: its connection has ended, and the next user opens a new one.
    pub(super) fn unregister(&self) {
        let Some(open) = self.pool.upgrade() else { return };
        let mut channels = open.0.lock();
        if channels.by_worker.get(&self.worker).is_some_and(|(number, _)| *number == self.number) {
            let removed = channels.by_worker.remove(&self.worker);
            drop(channels);
            drop(removed);
        }
    }
}

/// A connection, at either end.
pub(super) struct Connection {
    stream: Box<dyn ByteStream>,
    /// Registration of the channel, at the dialling end only.
    registration: Option<Arc<ChannelRegistration>>,
}

impl Connection {
    /// Wraps an incoming connection.
    pub(super) fn accepted(stream: Box<dyn ByteStream>) -> Self {
        Self { stream, registration: None }
    }

    /// Wraps a connection that was dialled for a channel.
    pub(super) fn dialled(stream: Box<dyn ByteStream>, lasting: Arc<ChannelRegistration>) -> Self {
        Self { stream, registration: Some(lasting) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(lasting) = &self.registration {
            lasting.unregister();
        }
    }
}

/// The library reads no information about the connection.
impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_read(context, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write(context, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.stream).poll_write_vectored(context, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.stream).poll_shutdown(context)
    }
}
