//! What all TCP connections between an instance and its workers have in common.

use std::io;
#[cfg(target_os = "linux")]
use std::time::Duration;

use tokio::net::TcpStream;

/// What was sent and is not acknowledged for so long never will be: the system ends the connection. Without that one whose packets get lost is held for a
/// quarter of an hour, with all that waits to be written to it.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// Has a connection send what it has at once, and end where nothing arrives any more.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}
