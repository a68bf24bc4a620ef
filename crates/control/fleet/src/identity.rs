//! Who somebody is, by certificates: what a process shows to others, and whom it believes.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::WorkerId;
use parking_lot::RwLock;
use rcgen::KeyPair;
use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::{TlsConnector, client, server};
use types::Clock;

use crate::socket;

/// What a connection for blocks of caches is called; one for tasks has no name.
const BLOCKS: &[u8] = b"kiln-blocks/1";
/// And one over which a worker is told what was loaded.
const LOADS: &[u8] = b"kiln-loads/1";

/// Whoever is dialled has to be there, and say who it is, within this.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Who a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Instance,
    Worker(WorkerId),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance => f.write_str("instance.kiln"),
            Self::Worker(id) => write!(f, "{id}.worker.kiln"),
        }
    }
}

impl Name {
    fn in_certificates(self) -> ServerName<'static> {
        ServerName::try_from(self.to_string()).expect("it has letters, digits and dots")
    }

    /// Whether the other end of a connection has shown a certificate for this name, which TLS has found to be the authority's.
    pub(crate) fn is_of(self, peer: &server::TlsStream<TcpStream>) -> bool {
        let shown = peer.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let Some(Ok(parsed)) = shown.map(ParsedCertificate::try_from) else { return false };
        verify_server_name(&parsed, &self.in_certificates()).is_ok()
    }
}

/// What a process shows to others under one certificate.
pub(crate) struct Identity {
    /// For who dials others.
    client: Arc<ClientConfig>,
    /// Likewise, for blocks of their caches.
    blocks: Arc<ClientConfig>,
    /// Likewise, to tell them what was loaded.
    loads: Arc<ClientConfig>,
    /// For who is dialled, by those with certificates.
    pub(crate) server: Arc<ServerConfig>,
    /// Likewise, by those who have none yet too.
    pub(crate) joined: Arc<ServerConfig>,
}

impl Identity {
    /// What the owner of `key` shows by `certificate`; it believes whom `authority` has signed.
    pub(crate) fn new(
        key: &KeyPair,
        certificate: &CertificateDer<'static>,
        authority: &CertificateDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let roots = roots(authority)?;
        let own = || vec![certificate.clone()];
        let secret = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let server = |may_be_a_stranger: bool| {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider());
            let verifier = if may_be_a_stranger { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
            let mut config = ServerConfig::builder_with_provider(provider())
                .with_protocol_versions(&[&TLS13])?
                .with_client_cert_verifier(verifier)
                .with_single_cert(own(), secret())?;
            config.alpn_protocols = vec![BLOCKS.to_vec(), LOADS.to_vec()];
            // Whoever comes again is looked at again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        let mut client = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(own(), secret())?;
        client.resumption = Resumption::disabled();
        let called = |name: &[u8]| {
            let mut called = client.clone();
            called.alpn_protocols = vec![name.to_vec()];
            Arc::new(called)
        };
        let (blocks, loads) = (called(BLOCKS), called(LOADS));
        Ok(Self { client: Arc::new(client), blocks, loads, server: server(false)?, joined: server(true)? })
    }
}

/// The identity of a process, which is renewed while it runs.
pub(crate) struct Credentials(RwLock<Arc<Identity>>);

impl Credentials {
    pub(crate) fn new(identity: Identity) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(identity))))
    }

    pub(crate) fn current(&self) -> Arc<Identity> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn renew(&self, identity: Identity) {
        *self.0.write() = Arc::new(identity);
    }

    /// A connection to who has this name, of which both ends know who the other is.
    pub(crate) async fn dial(
        &self,
        address: impl ToSocketAddrs,
        name: Name,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().client), address, name, clock).await
    }

    /// Likewise, for blocks of the other's cache.
    pub(crate) async fn dial_for_blocks(
        &self,
        address: impl ToSocketAddrs,
        name: Name,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().blocks), address, name, clock).await
    }

    /// Likewise, to tell it what was loaded.
    pub(crate) async fn dial_for_loads(
        &self,
        address: impl ToSocketAddrs,
        name: Name,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().loads), address, name, clock).await
    }
}

/// What a worker is dialled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    Tasks,
    /// To be given blocks of its cache.
    Blocks,
    /// To tell it what was loaded.
    Loads,
}

impl Errand {
    /// What whoever dialled wants.
    pub(crate) fn of(peer: &server::TlsStream<TcpStream>) -> Self {
        match peer.get_ref().1.alpn_protocol() {
            Some(BLOCKS) => Self::Blocks,
            Some(LOADS) => Self::Loads,
            _ => Self::Tasks,
        }
    }
}

/// Without keys.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// A connection to who has this name, by one who has no certificate yet.
pub(crate) async fn dial_as_stranger(
    authority: &CertificateDer<'static>,
    address: impl ToSocketAddrs,
    name: Name,
    clock: &Arc<dyn Clock>,
) -> io::Result<client::TlsStream<TcpStream>> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(roots(authority).map_err(io::Error::other)?)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    connect(Arc::new(config), address, name, clock).await
}

async fn connect(
    config: Arc<ClientConfig>,
    address: impl ToSocketAddrs,
    name: Name,
    clock: &Arc<dyn Clock>,
) -> io::Result<client::TlsStream<TcpStream>> {
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        socket::prepare(&stream)?;
        TlsConnector::from(config).connect(name.in_certificates(), stream).await
    };
    within(clock, CONNECT_TIME_MAX, connecting).await
}

/// What comes of `work` if that comes in time.
pub(crate) async fn within<T>(
    clock: &Arc<dyn Clock>,
    time: Duration,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = clock.sleep(time) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn roots(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    Ok(Arc::new(roots))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
