//! TLS by rustls, with the `ring` provider that the whole workspace uses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pgwire::api::auth::sasl::scram::ScramServerAuth;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Protocol name that a client offers in direct TLS, without a request before it, as of PostgreSQL 17.
pub const ALPN: &[u8] = b"postgresql";

/// Paths of certificate and key, both PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// File with the server's certificate first, then those that lead to its root.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Error of loading certificate and key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("could not read TLS file {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("TLS file {path} holds no usable PEM {item}")]
    Pem { path: PathBuf, item: &'static str, source: rustls_pki_types::pem::Error },
    #[error("TLS certificate file {path} holds no certificate")]
    NoCertificate { path: PathBuf },
    #[error("the certificate in {certificate} and the key in {key} cannot be used")]
    Unusable { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

/// TLS configuration of the server, with SCRAM bound to its certificate if the certificate's algorithm allows it.
#[derive(Clone)]
pub struct Tls {
    pub acceptor: TlsAcceptor,
    pub scram: ScramServerAuth,
}

impl Tls {
    /// Creates the configuration from the content of the files; their paths are for errors.
    pub fn new(files: &TlsFiles, certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let pem = |path: &Path, what| {
            let path = path.to_owned();
            move |source| TlsError::Pem { path, item: what, source }
        };
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate_pem)
            .collect::<Result<_, _>>()
            .map_err(pem(&files.certificate, "certificate"))?;
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate { path: files.certificate.clone() });
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(pem(&files.key, "private key"))?;
        let unusable =
            |source| TlsError::Unusable { certificate: files.certificate.clone(), key: files.key.clone(), source };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(unusable)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        let mut scram = ScramServerAuth::new();
        if let Err(error) = scram.configure_certificate(certificate_pem) {
            tracing::info!(
                %error,
                "could not bind SCRAM to the TLS certificate: clients are offered SCRAM without channel binding"
            );
        }
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), scram })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}
