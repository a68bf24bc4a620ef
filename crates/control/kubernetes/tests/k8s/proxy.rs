//! TCP proxy that can be interrupted.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Proxy from a local address to a server. Dropping it closes all connections.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    travellers: Arc<Mutex<Option<JoinSet<()>>>>,
    _gate: JoinSet<()>,
}

impl Proxy {
    /// Opens a proxy to `to` on a free local port.
    pub(crate) async fn to(to: SocketAddr) -> Proxy {
        Proxy::bind(([127, 0, 0, 1], 0).into(), to).await
    }

    /// Opens a proxy to `to` on the address `from`.
    pub(crate) async fn bind(from: SocketAddr, to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind(from).await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let travellers = Arc::new(Mutex::new(Some(JoinSet::new())));
        let mut gate = JoinSet::new();
        let open = Arc::clone(&travellers);
        gate.spawn(async move {
            loop {
                let Ok((mut from, _)) = listener.accept().await else { return };
                let mut open = open.lock();
                // While the proxy is interrupted, connections are closed at once.
                let Some(open) = open.as_mut() else { continue };
                open.spawn(async move {
                    let Ok(mut there) = TcpStream::connect(to).await else { return };
                    let _ended = tokio::io::copy_bidirectional(&mut from, &mut there).await;
                });
            }
        });
        Proxy { address, travellers, _gate: gate }
    }

    pub(crate) fn cut(&self) {
        *self.travellers.lock() = None;
    }

    pub(crate) fn heal(&self) {
        *self.travellers.lock() = Some(JoinSet::new());
    }
}
