//! Server certificate of an instance, signed by the namespace's authority and renewed before it expires.
//!
//! The pod reloads the mounted secret, so a renewal ends no session.

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::core::ObjectMeta;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose};

use super::authority::{Authority, limit};
use super::{AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY, TLS_TYPE, after, annotations, data, is_good, mark, text};
use crate::instance::{main_name, metadata, pods_name};
use crate::resources::Instance;

const DAY: u64 = 24 * 3_600;
const VALIDITY_SECONDS: u64 = 90 * DAY;
const RENEW_AFTER_SECONDS: u64 = 60 * DAY;

/// Returns the name of the secret that the operator creates.
#[must_use]
pub fn certificate_name(instance: &Instance) -> String {
    format!("{}-tls", instance.name_any())
}

/// Returns the certificate's subject names: those of the service and the pod, those of the local host for clients
/// behind a port forwarding, and the names in the instance's spec.
#[must_use]
pub fn names(instance: &Instance) -> Vec<String> {
    let namespace = instance.namespace().unwrap_or_default();
    let (service, pods) = (main_name(instance), pods_name(instance));
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
pub fn certificate(
    instance: &Instance,
    authority: &Authority,
    there: Option<&Secret>,
    now: Timestamp,
) -> Result<Secret, rcgen::Error> {
    let names = names(instance);
    let made_of = |certificate: &str, key: &str| {
        mark(names.iter().map(String::as_str).chain([authority.certificate.as_str(), certificate, key]))
    };
    let kept = there.and_then(|there| {
        let (certificate, key) = (text(there, CERTIFICATE_KEY)?, text(there, PRIVATE_KEY)?);
        let made_of = made_of(certificate, key);
        let renew_after = there.annotations().get(super::RENEW_AFTER)?.parse().ok()?;
        is_good(there, &made_of, now).then(|| (certificate.to_owned(), key.to_owned(), made_of, renew_after))
    });
    let (certificate, key, made_of, renew_after) = match kept {
        Some(kept) => kept,
        None => {
            let key = KeyPair::generate()?;
            let certificate = sign(instance, &names, authority, &key, now)?;
            let key = key.serialize_pem();
            let made_of = made_of(&certificate, &key);
            (certificate, key, made_of, after(now, RENEW_AFTER_SECONDS))
        }
    };
    Ok(Secret {
        metadata: ObjectMeta {
            annotations: Some(annotations(made_of, renew_after)),
            ..metadata(instance, certificate_name(instance))
        },
        type_: Some(TLS_TYPE.to_owned()),
        data: Some(data([
            (CERTIFICATE_KEY, &certificate),
            (PRIVATE_KEY, &key),
            (AUTHORITY_KEY, &authority.certificate),
        ])),
        ..Secret::default()
    })
}

fn sign(
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
    limit(&mut params, now, VALIDITY_SECONDS);
    Ok(params.signed_by(key, &authority.issuer)?.pem())
}
