//! Connections of the HTTP port, bounded in number and in the time of each request.
//!
//! Anybody may connect. Half-sent requests must not occupy sockets that PostgreSQL clients and the storage need, and
//! must not block probes.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use authentication::{ConnectionLimit, CountedConnection};
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::WaitForCancellationFutureOwned;
use types::Clock;

/// Maximum number of connections. Prometheus, probes and a few people need a dozen; one more closes the oldest.
const CONNECTIONS_MAX: usize = 64;

/// Time from accepting a connection, or from the first byte of a later request, to the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time from a response to the next request: Prometheus sends one per minute over one connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Pause after a failed accept, such as when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Listener with bounded connections.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    limit: Arc<ConnectionLimit>,
    clock: Arc<dyn Clock>,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener, clock: &Arc<dyn Clock>) -> Self {
        Self { listener, limit: ConnectionLimit::new(CONNECTIONS_MAX), clock: Arc::clone(clock) }
    }

    fn wrap(&self, stream: TcpStream) -> BoundedStream {
        let (clock, counted) = (Arc::clone(&self.clock), self.limit.add());
        let (close_requested, deadline) = (Box::pin(counted.close_requested()), clock.sleep(REQUEST_TIMEOUT));
        BoundedStream { stream, _counted: counted, close_requested, clock, deadline, is_idle: false }
    }
}

impl Listener for BoundedListener {
    type Io = BoundedStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (BoundedStream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => return (self.wrap(stream), address),
                Err(error) => {
                    tracing::debug!(%error, "could not accept an HTTP connection");
                    self.clock.sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Connection with a deadline.
pub(crate) struct BoundedStream {
    stream: TcpStream,
    _counted: CountedConnection,
    close_requested: Pin<Box<WaitForCancellationFutureOwned>>,
    clock: Arc<dyn Clock>,
    deadline: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// True between a response and the first byte of the next request.
    is_idle: bool,
}

impl BoundedStream {
    /// Fails once the deadline has passed, or a newer connection takes the slot.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.close_requested.as_mut().poll(context).is_ready() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "too many HTTP connections: this one is closed for a newer one",
            ));
        }
        if self.deadline.as_mut().poll(context).is_ready() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the HTTP request was not served within its time limit",
            ));
        }
        Ok(())
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_deadline(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.is_idle && before < buffer.filled().len() {
            self.is_idle = false;
            self.deadline = self.clock.sleep(REQUEST_TIMEOUT);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_deadline(context)?;
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.is_idle = true;
        self.deadline = self.clock.sleep(IDLE_TIMEOUT);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use types::SystemClock;

    use super::*;

    async fn started() -> (SocketAddr, tokio::task::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let router = axum::Router::new().route("/", axum::routing::get(|| async { "ok" }));
        let serving = axum::serve(BoundedListener::new(listener, &clock), router);
        (address, tokio::spawn(async move { serving.await.unwrap() }))
    }

    #[tokio::test]
    async fn half_sent_requests_keep_nobody_out() {
        let (address, serving) = started().await;
        let mut half = Vec::new();
        for _ in 0..3 * CONNECTIONS_MAX {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
            half.push(stream);
        }
        let mut asking = TcpStream::connect(address).await.unwrap();
        asking.write_all(b"GET / HTTP/1.1\r\nHost: kiln\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
        // The oldest are closed, with a response or without.
        let mut rest = Vec::new();
        let _ = half[0].read_to_end(&mut rest).await;
        serving.abort();
    }
}
