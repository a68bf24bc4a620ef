//! Outgoing connections for query tasks, from the instance to workers and between workers.
//!
//! A worker's task URL holds its address and its id, which its certificate must match: `http://host:port/id`. The
//! connection is TLS in spite of the scheme.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use cluster_model::WorkerId;
use exchange::{ByteStream, Dialer};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use types::Clock;
use url::Url;

use crate::mutual_tls::{CertificateName, Credentials};

/// Returns a worker's task URL; `None` before the worker has joined.
#[must_use]
pub fn task_url(worker: &cluster_model::Worker) -> Option<Url> {
    Url::parse(&format!("http://{}/{}", worker.address.as_deref()?, worker.id)).ok()
}

/// Opens authenticated connections to workers by their task URLs.
#[derive(Debug)]
pub(crate) struct TlsDialer {
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
}

impl TlsDialer {
    pub(crate) fn new(credentials: Arc<Credentials>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { credentials, clock })
    }

    /// Opens a connection for messages about new shards.
    pub(crate) async fn dial_for_announcements(&self, worker: &Url) -> io::Result<TlsStream<TcpStream>> {
        let (address, id) = try_parse_task_url(worker)?;
        self.credentials.dial_for_announcements(address, CertificateName::Worker(id), &self.clock).await
    }
}

#[async_trait]
impl Dialer for TlsDialer {
    async fn dial(&self, worker: &Url) -> io::Result<Box<dyn ByteStream>> {
        let (address, id) = try_parse_task_url(worker)?;
        let stream = self.credentials.dial(address, CertificateName::Worker(id), &self.clock).await?;
        Ok(Box::new(stream))
    }
}

/// Parses a task URL as [`parse_task_url`] does, with an error for an invalid one.
fn try_parse_task_url(worker: &Url) -> io::Result<(String, WorkerId)> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{worker} is not a worker's task URL"));
    parse_task_url(worker).ok_or_else(refused)
}

/// Parses a task URL into `host:port` and the worker's id.
pub(crate) fn parse_task_url(worker: &Url) -> Option<(String, WorkerId)> {
    let id = u64::from_str_radix(worker.path().strip_prefix('/')?, 16).ok()?;
    // A `Url` drops the default port of its scheme.
    let port = worker.port_or_known_default()?;
    Some((format!("{}:{port}", worker.host_str()?), WorkerId(id)))
}
