//! The certificate authority of an instance, which signs the certificates of the instance and of its workers.
//!
//! Its private key and certificate are in a file of the data folder with mode 0600. Whoever holds that file can
//! impersonate the instance.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use types::Clock;

use crate::mutual_tls::CertificateName;

#[cfg(test)]
mod tests;

/// File name in the data folder.
const AUTHORITY_FILE: &str = "authority.pem";
/// Validity of a signed certificate.
pub(crate) const CERTIFICATE_VALIDITY: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Tolerated difference between the clocks of two machines.
const CLOCK_SKEW: Duration = Duration::from_secs(3_600);
/// Length of an uncompressed P-256 point: a tag byte and two coordinates.
const PUBLIC_KEY_BYTES: usize = 65;
/// Tag byte of an uncompressed point.
const UNCOMPRESSED_POINT_TAG: u8 = 4;

/// Certificate authority of an instance.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    clock: Arc<dyn Clock>,
}

/// Failure to open the authority or to sign a certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("could not read certificate authority file {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write certificate authority file {path}")]
    Write { path: PathBuf, source: io::Error },
    /// Damaged file. If it is deleted, the next start creates a new authority, and workers of the old one exit.
    #[error("certificate authority file {path} holds no usable PEM {item}")]
    Damaged { path: PathBuf, item: &'static str },
    #[error("a public key of {bytes} bytes is not an uncompressed P-256 point")]
    InvalidPublicKey { bytes: usize },
    #[error("could not create or sign a TLS certificate")]
    Sign(#[from] rcgen::Error),
}

impl Authority {
    /// Loads the authority from the data folder; creates one if there is none.
    ///
    /// # Errors
    /// The file cannot be read or written, or is damaged.
    pub fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, AuthorityError> {
        let path = folder.join(AUTHORITY_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate()?;
                let certificate = authority_params().self_signed(&key)?;
                let text = format!("{}{}", key.serialize_pem(), certificate.pem());
                replace_file(folder, text.as_bytes())
                    .map_err(|source| AuthorityError::Write { path: path.clone(), source })?;
                text.into_bytes()
            }
            Err(source) => return Err(AuthorityError::Read { path, source }),
        };
        let damaged = |item| AuthorityError::Damaged { path: path.clone(), item };
        let key = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| damaged("private key"))?;
        let key =
            KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256).map_err(|_| damaged("private key"))?;
        let certificate = CertificateDer::from_pem_slice(&text).map_err(|_| damaged("certificate"))?;
        Ok(Self { issuer: Issuer::new(authority_params(), key), certificate, clock })
    }

    /// Returns the authority's own certificate, the trust anchor of all certificates it signs.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Returns the authority's own certificate as PEM.
    #[must_use]
    pub(crate) fn certificate_pem(&self) -> String {
        const LINE: usize = 64;
        let text = STANDARD.encode(self.certificate.as_ref());
        let lines = text.as_bytes().chunks(LINE).map(|line| str::from_utf8(line).expect("base64 is ASCII"));
        let lines: Vec<&str> = lines.collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// Signs a certificate for `name` and the public key, valid for [`CERTIFICATE_VALIDITY`] from now.
    ///
    /// # Errors
    /// The key is not an uncompressed P-256 point, or signing fails.
    pub(crate) fn sign(
        &self,
        name: CertificateName,
        public_key: &[u8],
    ) -> Result<CertificateDer<'static>, AuthorityError> {
        let is_point = public_key.len() == PUBLIC_KEY_BYTES && public_key[0] == UNCOMPRESSED_POINT_TAG;
        if !is_point {
            return Err(AuthorityError::InvalidPublicKey { bytes: public_key.len() });
        }
        let now = Duration::from_micros(u64::try_from(self.clock.now_us()).unwrap_or(0));
        let mut params = CertificateParams::new(vec![name.to_string()])?;
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
        params.not_after = epoch + now + CERTIFICATE_VALIDITY;
        params.distinguished_name = distinguished_name(&name.to_string());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(&PublicKey(public_key), &self.issuer)?.der().clone())
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Returns the parameters of the authority's own certificate.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = distinguished_name("Kiln instance");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// Returns a distinguished name with this common name.
fn distinguished_name(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// Replaces the file atomically and durably, readable by its owner only.
fn replace_file(folder: &Path, text: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!("{AUTHORITY_FILE}.new"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(AUTHORITY_FILE))?;
    File::open(folder)?.sync_all()
}

/// Public key of a certificate to be signed, as an uncompressed P-256 point.
struct PublicKey<'a>(&'a [u8]);

impl PublicKeyData for PublicKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}
