//! Detection of a disconnected client while its statement runs, when nobody reads from the socket.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use types::Clock;

/// Run time after which the client of a statement is watched; shorter statements are not worth it.
const WATCH_DELAY: Duration = Duration::from_millis(10);

/// Watcher of a client's socket.
#[derive(Debug, Default)]
pub struct DisconnectWatcher {
    /// Duplicate of the socket's descriptor; `None` if it could not be duplicated: then a disconnect goes unnoticed.
    socket: Option<OwnedFd>,
}

impl DisconnectWatcher {
    /// Creates the watcher of the client at the other end of a socket.
    pub fn new(socket: BorrowedFd<'_>) -> Self {
        let socket = socket.try_clone_to_owned();
        let socket = socket.inspect_err(|error| tracing::warn!(%error, "could not watch a client for disconnects"));
        Self { socket: socket.ok() }
    }

    /// Completes once the client has disconnected, even while its messages wait to be read.
    pub async fn disconnected(&self, clock: &dyn Clock) {
        clock.sleep(WATCH_DELAY).await;
        let Some(socket) = &self.socket else { return std::future::pending().await };
        if let Err(error) = wait_for_close(socket).await {
            tracing::warn!(%error, "could not watch a client for disconnects: its statement goes on without it");
            std::future::pending().await
        }
    }
}

/// Completes once the other end has closed its side.
async fn wait_for_close(socket: &OwnedFd) -> io::Result<()> {
    let watched = TcpStream::from_std(socket.try_clone()?.into())?;
    while !watched.ready(Interest::READABLE).await?.is_read_closed() {
        // Messages wait to be read, by the session: this clears the readiness, so that the next event is reported.
        let _ = watched.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
    Ok(())
}
