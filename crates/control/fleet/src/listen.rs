//! Taking connections of which TLS says who is at the other end. Who does not say it in time, or is not believed, has gone before anybody looks.

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

use crate::identity::within;
use crate::socket;

/// Those that have connected and not said who they are; more wait.
const STRANGERS_MAX: usize = 128;
/// TLS has begun within this.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Between tries where the system has no more files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A connection that counts among those of strangers until it is known.
pub(crate) struct Stranger {
    pub(crate) stream: TlsStream<TcpStream>,
    /// Dropped when it is known.
    pub(crate) place: OwnedSemaphorePermit,
}

/// Takes connections for as long as it is polled and has `serve` go on with each. What `config` gives is asked for each anew.
pub(crate) async fn listen<F>(
    listener: TcpListener,
    config: impl Fn() -> Arc<ServerConfig>,
    clock: Arc<dyn Clock>,
    serve: impl Fn(Stranger) -> F + Clone + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(STRANGERS_MAX));
    let mut served = JoinSet::new();
    loop {
        // Those that have ended.
        while served.try_join_next().is_some() {}
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes it");
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be taken");
                clock.sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let (config, serve, clock) = (config(), serve.clone(), Arc::clone(&clock));
        served.spawn(async move {
            match within(&clock, HANDSHAKE_TIME_MAX, handshake(config, stream)).await {
                Ok(stream) => serve(Stranger { stream, place }).await,
                Err(error) => tracing::debug!(%error, "a connection is refused"),
            }
        });
    }
}

async fn handshake(config: Arc<ServerConfig>, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    socket::prepare(&stream)?;
    TlsAcceptor::from(config).accept(stream).await
}
