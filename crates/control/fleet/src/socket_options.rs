//! Socket options of all TCP connections between an instance and its workers.

use std::io;
#[cfg(target_os = "linux")]
use std::time::Duration;

use tokio::net::TcpStream;

/// `TCP_USER_TIMEOUT`: sent data that stays unacknowledged this long closes the connection. Without it, a connection
/// whose packets are lost blocks its writers for a quarter of an hour.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// Disables Nagle's algorithm and sets the timeout for unacknowledged data.
pub(crate) fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    socket2::SockRef::from(stream).set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}
