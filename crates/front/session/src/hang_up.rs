//! Whether a client has hung up, for a statement that runs meanwhile: nobody reads from the socket then.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use types::Clock;

/// Who runs for a shorter time is not looked after.
const LOOK_AFTER: Duration = Duration::from_millis(10);

/// A client's socket, seen from aside.
#[derive(Debug, Default)]
pub struct HangUp {
    /// Another handle on it; `None` where there is none to be had, and nothing is noticed.
    socket: Option<OwnedFd>,
}

impl HangUp {
    /// Watches the client at the other end of a socket.
    pub fn of(socket: BorrowedFd<'_>) -> Self {
        let socket = socket.try_clone_to_owned();
        let socket = socket.inspect_err(|error| tracing::warn!(%error, "a client that hangs up will not be noticed"));
        Self { socket: socket.ok() }
    }

    /// Completes once the client has hung up, even while messages of it wait to be read.
    pub async fn noticed(&self, clock: &dyn Clock) {
        clock.sleep(LOOK_AFTER).await;
        let Some(socket) = &self.socket else { return std::future::pending().await };
        if let Err(error) = closed(socket).await {
            tracing::warn!(%error, "a client that hangs up will not be noticed");
            std::future::pending().await
        }
    }
}

/// Completes once the other end has closed its side.
async fn closed(socket: &OwnedFd) -> io::Result<()> {
    let watched = TcpStream::from_std(socket.try_clone()?.into())?;
    while !watched.ready(Interest::READABLE).await?.is_read_closed() {
        // There is something to read, which is not for us: what comes next is told anew.
        let _ = watched.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
    }
    Ok(())
}
