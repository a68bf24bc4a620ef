//! Connection to a server: address, role and TLS.

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::sync::mpsc;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Connection parameters of a server, reusable for further connections.
#[derive(Clone)]
pub(crate) struct ConnectionTarget {
    pub(crate) config: Config,
    tls: MakeRustlsConnect,
}

/// Open connection, with the notices that the server sends on it.
pub(crate) struct Connection {
    pub(crate) client: Client,
    pub(crate) notices: mpsc::UnboundedReceiver<tokio_postgres::error::DbError>,
}

impl ConnectionTarget {
    /// Parses `postgresql://user:password@host:port/database?sslmode=…`.
    pub(crate) fn from_url(url: &str) -> anyhow::Result<Self> {
        let mut config: Config = url.parse().with_context(|| format!("cannot parse the address {url:?}"))?;
        config.application_name("kiln sql");
        Ok(Self { config, tls: tls_connector(None)? })
    }

    pub(crate) fn from_parts(
        host: &str,
        port: u16,
        user: &str,
        database: &str,
        sslmode: &str,
        root_certificates: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let mut config = Config::new();
        config.host(host).port(port).user(user).dbname(database).application_name("kiln sql");
        let (mode, roots) = match (sslmode, root_certificates) {
            ("disable", _) => (SslMode::Disable, None),
            ("prefer" | "allow", _) => (SslMode::Prefer, None),
            ("require", roots) => (SslMode::Require, roots),
            ("verify-full", Some(roots)) => (SslMode::Require, Some(roots)),
            ("verify-full", None) => anyhow::bail!("verify-full needs --sslrootcert"),
            (other, _) => anyhow::bail!("unknown sslmode {other:?}: use disable, prefer, require or verify-full"),
        };
        config.ssl_mode(mode);
        Ok(Self { config, tls: tls_connector(roots)? })
    }
}

/// Connects, and drives the connection in the background until the client is dropped.
pub(crate) async fn connect(target: &ConnectionTarget) -> anyhow::Result<Connection> {
    let (client, mut connection) = target.config.connect(target.tls.clone()).await.map_err(connect_error)?;
    let (sender, notices) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notice(notice) = message {
                // The connection stays open even if nobody receives its notices.
                let _ = sender.send(notice);
            }
        }
    });
    Ok(Connection { client, notices })
}

/// Cancels the statement that the connection of `token` runs, by a request on a separate connection.
pub(crate) async fn cancel(
    target: &ConnectionTarget,
    token: tokio_postgres::CancelToken,
) -> Result<(), tokio_postgres::Error> {
    token.cancel_query(target.tls.clone()).await
}

fn connect_error(error: tokio_postgres::Error) -> anyhow::Error {
    match error.as_db_error() {
        Some(db_error) => {
            anyhow::anyhow!("{}: {} ({})", db_error.severity(), db_error.message(), db_error.code().code())
        }
        None => anyhow::Error::new(error).context("cannot connect"),
    }
}

/// Returns the TLS connector. With root certificates it verifies the server; without, it only encrypts, like libpq's
/// `require`.
fn tls_connector(root_certificates: Option<&Path>) -> anyhow::Result<MakeRustlsConnect> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = match root_certificates {
        Some(path) => {
            let mut roots = RootCertStore::empty();
            let unreadable = || format!("cannot read certificates from {}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).with_context(unreadable)? {
                roots.add(certificate.with_context(unreadable)?)?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificateVerifier { provider }))
            .with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

/// Certificate verifier that accepts any certificate, but still checks that the server has its private key.
#[derive(Debug)]
struct AnyCertificateVerifier {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyCertificateVerifier {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
