//! Mutual TLS between an instance and its workers: certificate names, TLS configurations and authenticated connections.

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

use crate::socket_options;

/// ALPN protocol of connections that transfer cache blocks. Connections for tasks use none.
const BLOCKS_ALPN: &[u8] = b"kiln-blocks/1";
/// ALPN protocol of connections that announce new shards to a worker.
const ANNOUNCEMENTS_ALPN: &[u8] = b"kiln-loads/1";

/// Time limit for connecting, including the TLS handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Subject of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CertificateName {
    Instance,
    Worker(WorkerId),
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instance => f.write_str("instance.kiln"),
            Self::Worker(id) => write!(f, "{id}.worker.kiln"),
        }
    }
}

impl CertificateName {
    /// Returns the DNS name in the certificate.
    fn server_name(self) -> ServerName<'static> {
        ServerName::try_from(self.to_string()).expect("a certificate name has only letters, digits and dots")
    }

    /// Whether the peer's certificate is for this name. TLS has verified already that the authority signed it.
    pub(crate) fn matches_peer(self, peer: &server::TlsStream<TcpStream>) -> bool {
        let shown = peer.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let Some(Ok(parsed)) = shown.map(ParsedCertificate::try_from) else { return false };
        verify_server_name(&parsed, &self.server_name()).is_ok()
    }
}

/// TLS configurations of a process for one certificate.
pub(crate) struct TlsIdentity {
    /// Client configuration for tasks and for joining.
    client: Arc<ClientConfig>,
    /// Client configuration for cache blocks.
    blocks_client: Arc<ClientConfig>,
    /// Client configuration for announcements of new shards.
    announcements_client: Arc<ClientConfig>,
    /// Server configuration that requires a client certificate.
    pub(crate) server: Arc<ServerConfig>,
    /// Server configuration of the join listener, which accepts clients without a certificate.
    pub(crate) join_server: Arc<ServerConfig>,
}

impl TlsIdentity {
    /// Builds the configurations from a key and its certificate; peers need certificates signed by `authority`.
    pub(crate) fn new(
        key: &KeyPair,
        certificate: &CertificateDer<'static>,
        authority: &CertificateDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let roots = root_store(authority)?;
        let own = || vec![certificate.clone()];
        let secret = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let server = |may_be_a_stranger: bool| {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), crypto_provider());
            let verifier = if may_be_a_stranger { verifier.allow_unauthenticated() } else { verifier };
            let verifier = verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
            let mut config = ServerConfig::builder_with_provider(crypto_provider())
                .with_protocol_versions(&[&TLS13])?
                .with_client_cert_verifier(verifier)
                .with_single_cert(own(), secret())?;
            config.alpn_protocols = vec![BLOCKS_ALPN.to_vec(), ANNOUNCEMENTS_ALPN.to_vec()];
            // No session resumption: every connection verifies the certificates.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
            Ok::<_, rustls::Error>(Arc::new(config))
        };
        let mut client = ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(Arc::clone(&roots))
            .with_client_auth_cert(own(), secret())?;
        client.resumption = Resumption::disabled();
        let called = |name: &[u8]| {
            let mut called = client.clone();
            called.alpn_protocols = vec![name.to_vec()];
            Arc::new(called)
        };
        let (blocks, loads) = (called(BLOCKS_ALPN), called(ANNOUNCEMENTS_ALPN));
        Ok(Self {
            client: Arc::new(client),
            blocks_client: blocks,
            announcements_client: loads,
            server: server(false)?,
            join_server: server(true)?,
        })
    }
}

/// Current TLS identity of a process, which is replaced when its certificate is renewed.
pub(crate) struct Credentials(RwLock<Arc<TlsIdentity>>);

impl Credentials {
    pub(crate) fn new(identity: TlsIdentity) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(identity))))
    }

    pub(crate) fn current(&self) -> Arc<TlsIdentity> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn renew(&self, identity: TlsIdentity) {
        *self.0.write() = Arc::new(identity);
    }

    /// Opens a mutually authenticated connection for tasks, to a server whose certificate is for `name`.
    pub(crate) async fn dial(
        &self,
        address: impl ToSocketAddrs,
        name: CertificateName,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().client), address, name, clock).await
    }

    /// Opens a connection like [`Credentials::dial`], for blocks of the other's cache.
    pub(crate) async fn dial_for_blocks(
        &self,
        address: impl ToSocketAddrs,
        name: CertificateName,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().blocks_client), address, name, clock).await
    }

    /// Opens a connection like [`Credentials::dial`], for announcements of new shards.
    pub(crate) async fn dial_for_announcements(
        &self,
        address: impl ToSocketAddrs,
        name: CertificateName,
        clock: &Arc<dyn Clock>,
    ) -> io::Result<client::TlsStream<TcpStream>> {
        connect(Arc::clone(&self.current().announcements_client), address, name, clock).await
    }
}

/// Protocol of a connection to a worker, as negotiated by ALPN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPurpose {
    /// Query tasks.
    Tasks,
    /// Transfer of blocks from its cache.
    Blocks,
    /// Announcements of new shards.
    Announcements,
}

impl ConnectionPurpose {
    /// Returns the protocol that the client has asked for.
    pub(crate) fn from_peer(peer: &server::TlsStream<TcpStream>) -> Self {
        match peer.get_ref().1.alpn_protocol() {
            Some(BLOCKS_ALPN) => Self::Blocks,
            Some(ANNOUNCEMENTS_ALPN) => Self::Announcements,
            _ => Self::Tasks,
        }
    }
}

/// Omits the keys.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Opens a connection without a client certificate, to a server whose certificate is for `name`.
pub(crate) async fn dial_unauthenticated(
    authority: &CertificateDer<'static>,
    address: impl ToSocketAddrs,
    name: CertificateName,
    clock: &Arc<dyn Clock>,
) -> io::Result<client::TlsStream<TcpStream>> {
    let mut config = ClientConfig::builder_with_provider(crypto_provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_root_certificates(root_store(authority).map_err(io::Error::other)?)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    connect(Arc::new(config), address, name, clock).await
}

/// Opens a TLS connection within [`CONNECT_TIMEOUT`].
async fn connect(
    config: Arc<ClientConfig>,
    address: impl ToSocketAddrs,
    name: CertificateName,
    clock: &Arc<dyn Clock>,
) -> io::Result<client::TlsStream<TcpStream>> {
    let connecting = async {
        let stream = TcpStream::connect(address).await?;
        socket_options::set_options(&stream)?;
        TlsConnector::from(config).connect(name.server_name(), stream).await
    };
    with_timeout(clock, CONNECT_TIMEOUT, connecting).await
}

/// Runs `work` with a time limit; fails with `TimedOut` when it is over.
pub(crate) async fn with_timeout<T>(
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

/// Returns a certificate store that trusts the authority only.
fn root_store(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    Ok(Arc::new(roots))
}

fn crypto_provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
