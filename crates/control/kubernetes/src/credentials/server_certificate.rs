//! Server certificate of an instance, signed by the namespace's authority and renewed before it expires.
//!
//! The pod reloads the mounted secret, so a renewal ends no session.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use super::certificate_authority::{Authority, set_validity};
use super::{
    CA_CERTIFICATE_KEY, CERTIFICATE_KEY, PRIVATE_KEY, TLS_TYPE, add_seconds, annotations, content_hash, is_current,
    secret_data, secret_text,
};
use crate::instance::{headless_service_name, metadata, shared_object_name};
use crate::resources::Instance;

const DAY: u64 = 24 * 3_600;
const VALIDITY_SECONDS: u64 = 90 * DAY;
const RENEW_AFTER_SECONDS: u64 = 60 * DAY;

/// Returns the name of the secret that the operator creates.
#[must_use]
pub fn certificate_secret_name(instance: &Instance) -> String {
    format!("{}-tls", instance.name_any())
}

/// Returns the certificate's subject names: those of the service and the pod, those of the local host for clients
/// behind a port forwarding, and the names in the instance's spec.
#[must_use]
pub fn subject_names(instance: &Instance) -> Vec<String> {
    let namespace = instance.namespace().unwrap_or_default();
    let (service, pods) = (shared_object_name(instance), headless_service_name(instance));
    let mut names = Vec::new();
    for name in [service.clone(), format!("{service}-0.{pods}")] {
        let within = ["", ".svc", ".svc.cluster.local"].map(|domain| format!("{name}.{namespace}{domain}"));
        names.push(name);
        names.extend(within);
    }
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    names.extend(instance.spec.tls.names.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    names
}

/// Returns the desired secret with the certificate. It is the content of `there`, the existing secret of the instance,
/// if that is still valid for these names and this authority; otherwise a new key and certificate.
///
/// # Errors
/// Returns an error if a name is not valid or the system's random generator fails.
pub fn certificate_secret(
    instance: &Instance,
    authority: &Authority,
    existing: Option<&Secret>,
    now: Timestamp,
) -> Result<Secret, rcgen::Error> {
    let names = subject_names(instance);
    let made_of = |certificate: &str, key: &str| {
        content_hash(names.iter().map(String::as_str).chain([authority.certificate.as_str(), certificate, key]))
    };
    let current = existing.and_then(|there| {
        let (certificate, key) = (secret_text(there, CERTIFICATE_KEY)?, secret_text(there, PRIVATE_KEY)?);
        let made_of = made_of(certificate, key);
        let renew_after = there.annotations().get(super::RENEW_AFTER_ANNOTATION)?.parse().ok()?;
        is_current(there, &made_of, now).then(|| (certificate.to_owned(), key.to_owned(), made_of, renew_after))
    });
    let (certificate, key, made_of, renew_after) = match current {
        Some(kept) => kept,
        None => {
            let key = KeyPair::generate()?;
            let certificate = sign_certificate(instance, &names, authority, &key, now)?;
            let key = key.serialize_pem();
            let made_of = made_of(&certificate, &key);
            (certificate, key, made_of, add_seconds(now, RENEW_AFTER_SECONDS))
        }
    };
    Ok(Secret {
        metadata: ObjectMeta {
            annotations: Some(annotations(made_of, renew_after)),
            ..metadata(instance, certificate_secret_name(instance))
        },
        type_: Some(TLS_TYPE.to_owned()),
        data: Some(secret_data([
            (CERTIFICATE_KEY, &certificate),
            (PRIVATE_KEY, &key),
            (CA_CERTIFICATE_KEY, &authority.certificate),
        ])),
        ..Secret::default()
    })
}

fn sign_certificate(
    instance: &Instance,
    names: &[String],
    authority: &Authority,
    key: &KeyPair,
    now: Timestamp,
) -> Result<String, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, instance.name_any());
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, VALIDITY_SECONDS);
    Ok(params.signed_by(key, &authority.issuer)?.pem())
}
