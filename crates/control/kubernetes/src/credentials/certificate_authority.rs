//! Certificate authority of a namespace, which signs the server certificates of all its instances.
//!
//! Clients that trust it trust every instance, including one that was deleted and created again. Before the authority's
//! certificate expires, it is replaced by a new one over the same key, so clients that trust the old one keep working.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::core::ObjectMeta;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};

use super::{
    CA_CERTIFICATE_KEY, CERTIFICATE_KEY, CLOCK_SKEW_SECONDS, PRIVATE_KEY, TLS_TYPE, add_seconds, annotations,
    content_hash, is_current, secret_data, secret_text,
};

/// Name of the secret with the authority's key, and of the config map with its certificate.
pub const AUTHORITY_NAME: &str = "kiln-ca";

const DAY: u64 = 24 * 3_600;
const VALIDITY_SECONDS: u64 = 3_650 * DAY;
/// Age at which the certificate is renewed: a third of its lifetime is left.
const RENEW_AFTER_SECONDS: u64 = VALIDITY_SECONDS / 3 * 2;

/// Certificate authority, able to sign certificates.
pub struct Authority {
    pub(super) issuer: Issuer<'static, KeyPair>,
    /// Certificate of the authority itself, as PEM.
    pub(super) certificate: String,
    secret: Secret,
}

impl Authority {
    /// Loads the authority from its secret. Returns `None` if the secret is damaged, was made for another namespace or
    /// is due for renewal.
    #[must_use]
    pub fn from_secret(secret: &Secret, namespace: &str, now: Timestamp) -> Option<Authority> {
        let (certificate, key) = (secret_text(secret, CERTIFICATE_KEY)?, secret_text(secret, PRIVATE_KEY)?);
        if !is_current(secret, &content_hash([namespace, certificate, key]), now) {
            return None;
        }
        let issuer = Issuer::new(params(namespace), KeyPair::from_pem(key).ok()?);
        Some(Authority { issuer, certificate: certificate.to_owned(), secret: secret.clone() })
    }

    /// Creates an authority with a new certificate: over the key in `before` if there is one, otherwise over a new key.
    ///
    /// # Errors
    /// Returns an error if the system's random generator fails.
    pub fn create(namespace: &str, before: Option<&Secret>, now: Timestamp) -> Result<Authority, rcgen::Error> {
        let existing_key = before.and_then(|before| KeyPair::from_pem(secret_text(before, PRIVATE_KEY)?).ok());
        let key = existing_key.map_or_else(KeyPair::generate, Ok)?;
        let mut params = params(namespace);
        set_validity(&mut params, now, VALIDITY_SECONDS);
        // The serial number has to differ from the previous certificate's, which is over the same key.
        params.serial_number = Some(u64::try_from(now.as_second()).unwrap_or(0).into());
        let certificate = params.self_signed(&key)?.pem();
        let key_pem = key.serialize_pem();
        let made_of = content_hash([namespace, certificate.as_str(), key_pem.as_str()]);
        let secret = Secret {
            metadata: ObjectMeta {
                annotations: Some(annotations(made_of, add_seconds(now, RENEW_AFTER_SECONDS))),
                ..metadata(namespace)
            },
            type_: Some(TLS_TYPE.to_owned()),
            data: Some(secret_data([(CERTIFICATE_KEY, &certificate), (PRIVATE_KEY, &key_pem)])),
            ..Secret::default()
        };
        Ok(Authority { issuer: Issuer::new(params, key), certificate, secret })
    }

    /// Returns the secret that stores the authority.
    #[must_use]
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns the config map with the certificate, which clients in the namespace mount or read.
    #[must_use]
    pub fn config_map(&self, namespace: &str) -> ConfigMap {
        ConfigMap {
            metadata: metadata(namespace),
            data: Some(BTreeMap::from([(CA_CERTIFICATE_KEY.to_owned(), self.certificate.clone())])),
            ..ConfigMap::default()
        }
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Sets the validity period: from [`CLOCK_SKEW_SECONDS`] before `now` until `seconds` after it.
pub(super) fn set_validity(params: &mut CertificateParams, now: Timestamp, seconds: u64) {
    let (epoch, now) = (date_time_ymd(1970, 1, 1), u64::try_from(now.as_second()).unwrap_or(0));
    params.not_before = epoch + Duration::from_secs(now.saturating_sub(CLOCK_SKEW_SECONDS));
    params.not_after = epoch + Duration::from_secs(now.saturating_add(seconds));
}

fn params(namespace: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, namespace);
    params.distinguished_name.push(DnType::CommonName, "Kiln");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn metadata(namespace: &str) -> ObjectMeta {
    let labels = [("app.kubernetes.io/name", "kiln"), ("app.kubernetes.io/managed-by", "kiln-operator")];
    ObjectMeta {
        name: Some(AUTHORITY_NAME.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.map(|(name, value)| (name.to_owned(), value.to_owned())).into()),
        ..ObjectMeta::default()
    }
}
