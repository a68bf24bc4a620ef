//! Connections for the tasks of queries, between an instance and its workers and among these.
//!
//! The address of a worker for tasks says where it is and who has to be there: `http://host:port/id`, though it is TLS that is spoken there.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use cluster_model::WorkerId;
use exchange::{ByteStream, Dial};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use types::Clock;
use url::Url;

use crate::identity::{Credentials, Name};

/// Where tasks of a worker go; `None` before it has joined.
#[must_use]
pub fn task_url(worker: &cluster_model::Worker) -> Option<Url> {
    Url::parse(&format!("http://{}/{}", worker.address.as_deref()?, worker.id)).ok()
}

/// Dials workers by their addresses.
#[derive(Debug)]
pub(crate) struct Dialer {
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
}

impl Dialer {
    pub(crate) fn new(credentials: Arc<Credentials>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { credentials, clock })
    }

    /// A connection over which a worker is told what was loaded.
    pub(crate) async fn dial_for_loads(&self, worker: &Url) -> io::Result<TlsStream<TcpStream>> {
        let (address, id) = place_of(worker)?;
        self.credentials.dial_for_loads(address, Name::Worker(id), &self.clock).await
    }
}

#[async_trait]
impl Dial for Dialer {
    async fn dial(&self, worker: &Url) -> io::Result<Box<dyn ByteStream>> {
        let (address, id) = place_of(worker)?;
        let stream = self.credentials.dial(address, Name::Worker(id), &self.clock).await?;
        Ok(Box::new(stream))
    }
}

fn place_of(worker: &Url) -> io::Result<(String, WorkerId)> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, format!("{worker} is no worker's address"));
    place(worker).ok_or_else(refused)
}

/// Where the worker of an address for tasks is, and who.
pub(crate) fn place(worker: &Url) -> Option<(String, WorkerId)> {
    let id = u64::from_str_radix(worker.path().strip_prefix('/')?, 16).ok()?;
    // The port of http is left out where it is the usual one.
    let port = worker.port_or_known_default()?;
    Some((format!("{}:{port}", worker.host_str()?), WorkerId(id)))
}
