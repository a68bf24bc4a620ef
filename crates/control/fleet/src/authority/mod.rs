//! The certificate authority of an instance: it says who is the instance, and who is which of its workers.
//!
//! Its key and its certificate lie in a file of the data folder that nobody else may read. Whoever has that file is the instance.

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

use crate::identity::Name;

#[cfg(test)]
mod tests;

/// Name of the file in the data folder.
const FILE: &str = "authority.pem";
/// A certificate that was signed may be used for so long.
pub(crate) const VALIDITY: Duration = Duration::from_secs(7 * 24 * 3_600);
/// Clocks of machines may differ by so much.
const CLOCK_SKEW: Duration = Duration::from_secs(3_600);
/// A point of the curve P-256 as certificates have it: a mark and two coordinates.
const PUBLIC_KEY_BYTES: usize = 65;
const UNCOMPRESSED: u8 = 4;

/// Signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    clock: Arc<dyn Clock>,
}

/// Why there is no authority, or no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("could not read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write {path}")]
    Write { path: PathBuf, source: io::Error },
    /// Somebody changed the file. Without it a start makes a new authority, and workers of the old one end.
    #[error("{path} holds no usable PEM {what}")]
    Damaged { path: PathBuf, what: &'static str },
    #[error("a public key of {bytes} bytes is no point of the curve P-256")]
    PublicKey { bytes: usize },
    #[error("a certificate could not be made")]
    Sign(#[from] rcgen::Error),
}

impl Authority {
    /// The authority of the data folder; a new one where it has none.
    ///
    /// # Errors
    /// The file cannot be read or written, or is damaged.
    pub fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, AuthorityError> {
        let path = folder.join(FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = KeyPair::generate()?;
                let certificate = params().self_signed(&key)?;
                let text = format!("{}{}", key.serialize_pem(), certificate.pem());
                write(folder, text.as_bytes())
                    .map_err(|source| AuthorityError::Write { path: path.clone(), source })?;
                text.into_bytes()
            }
            Err(source) => return Err(AuthorityError::Read { path, source }),
        };
        let damaged = |what| AuthorityError::Damaged { path: path.clone(), what };
        let key = PrivatePkcs8KeyDer::from_pem_slice(&text).map_err(|_| damaged("private key"))?;
        let key =
            KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ECDSA_P256_SHA256).map_err(|_| damaged("private key"))?;
        let certificate = CertificateDer::from_pem_slice(&text).map_err(|_| damaged("certificate"))?;
        Ok(Self { issuer: Issuer::new(params(), key), certificate, clock })
    }

    /// The certificate that vouches for those it signs.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// That one as text.
    #[must_use]
    pub(crate) fn certificate_pem(&self) -> String {
        const LINE: usize = 64;
        let text = STANDARD.encode(self.certificate.as_ref());
        let lines = text.as_bytes().chunks(LINE).map(|line| str::from_utf8(line).expect("base64 is ASCII"));
        let lines: Vec<&str> = lines.collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// A certificate by which the owner of a key is who `name` says, for a week from now.
    pub(crate) fn sign(&self, name: Name, public_key: &[u8]) -> Result<CertificateDer<'static>, AuthorityError> {
        let is_point = public_key.len() == PUBLIC_KEY_BYTES && public_key[0] == UNCOMPRESSED;
        if !is_point {
            return Err(AuthorityError::PublicKey { bytes: public_key.len() });
        }
        let now = Duration::from_micros(u64::try_from(self.clock.now_us()).unwrap_or(0));
        let mut params = CertificateParams::new(vec![name.to_string()])?;
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
        params.not_after = epoch + now + VALIDITY;
        params.distinguished_name = called(&name.to_string());
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

/// What the authority is, but for its key.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = called("Kiln instance");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn called(name: &str) -> DistinguishedName {
    let mut called = DistinguishedName::new();
    called.push(DnType::CommonName, name);
    called
}

/// Whole or not at all, for nobody but the owner.
fn write(folder: &Path, text: &[u8]) -> io::Result<()> {
    let draft = folder.join(format!("{FILE}.new"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(FILE))?;
    File::open(folder)?.sync_all()
}

/// A key of somebody else.
struct PublicKey<'a>(&'a [u8]);

impl PublicKeyData for PublicKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}
