//! Connections to workers that are open: each is known as long as it lasts, so that nothing is left of a worker that is gone.

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

use crate::channel::ByteStream;

/// What goes over each of them.
#[derive(Default)]
pub(super) struct Open(Mutex<Channels>);

#[derive(Default)]
struct Channels {
    by_worker: HashMap<Url, (u64, BoxCloneSyncChannel)>,
    last: u64,
}

impl Open {
    /// The channel to a worker; what `make` makes where there is none, which ends with what it is given.
    pub(super) fn get_or_make<E>(
        self: &Arc<Self>,
        worker: &Url,
        make: impl FnOnce(Arc<Lasting>) -> Result<BoxCloneSyncChannel, E>,
    ) -> Result<BoxCloneSyncChannel, E> {
        let mut channels = self.0.lock();
        if let Some((_, open)) = channels.by_worker.get(worker) {
            return Ok(open.clone());
        }
        channels.last += 1;
        let number = channels.last;
        let made = make(Arc::new(Lasting { open: Arc::downgrade(self), worker: worker.clone(), number }))?;
        channels.by_worker.insert(worker.clone(), (number, made.clone()));
        Ok(made)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().by_worker.len()
    }
}

/// Which channel a connection is for.
pub(super) struct Lasting {
    open: Weak<Open>,
    worker: Url,
    number: u64,
}

impl Lasting {
    /// The channel has no connection: whoever wants the worker begins anew.
    pub(super) fn over(&self) {
        let Some(open) = self.open.upgrade() else { return };
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
    /// At the end of who has dialled.
    lasting: Option<Arc<Lasting>>,
}

impl Connection {
    /// One that has come.
    pub(super) fn accepted(stream: Box<dyn ByteStream>) -> Self {
        Self { stream, lasting: None }
    }

    /// One that was opened for a channel.
    pub(super) fn dialled(stream: Box<dyn ByteStream>, lasting: Arc<Lasting>) -> Self {
        Self { stream, lasting: Some(lasting) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(lasting) = &self.lasting {
            lasting.over();
        }
    }
}

/// The library has nothing to ask of it.
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
