//! TLS listener: performs the handshake, with a limit on its time and on the number of unauthenticated connections.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use types::Clock;

use crate::mutual_tls::with_timeout;
use crate::socket_options;

/// Most unauthenticated connections at a time; more wait in the system's accept queue.
const PENDING_CONNECTIONS_MAX: usize = 128;
/// Time limit of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Connection that has passed the TLS handshake and still counts as unauthenticated.
pub(crate) struct PendingConnection {
    pub(crate) stream: TlsStream<TcpStream>,
    /// Permit for an unauthenticated connection, to be dropped once the peer is authenticated.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Accepts connections until the future is dropped and runs `serve` on each. Calls `config` for each connection, so
/// that renewed certificates take effect.
pub(crate) async fn listen<F>(
    listener: TcpListener,
    config: impl Fn() -> Arc<ServerConfig>,
    clock: Arc<dyn Clock>,
    serve: impl Fn(PendingConnection) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(PENDING_CONNECTIONS_MAX));
    let mut served = JoinSet::new();
    loop {
        // Reap finished connections.
        while served.try_join_next().is_some() {}
        let permit = Arc::clone(&permits).acquire_owned().await.expect("the listener's semaphore is never closed");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "could not accept a TLS connection from a worker or the instance");
                clock.sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let (config, serve, clock) = (config(), serve.clone(), Arc::clone(&clock));
        served.spawn(async move {
            match with_timeout(&clock, HANDSHAKE_TIMEOUT, handshake(config, stream)).await {
                Ok(stream) => serve(PendingConnection { stream, permit }).await,
                Err(error) => tracing::debug!(%error, "TLS handshake of an incoming connection failed"),
            }
        });
    }
}

async fn handshake(config: Arc<ServerConfig>, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    socket_options::set_options(&stream)?;
    TlsAcceptor::from(config).accept(stream).await
}
