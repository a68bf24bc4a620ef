//! Secrets of the instances of a namespace: certificate authority, server certificates and superuser passwords.
//!
//! A secret that exists and is still valid is never changed. Randomness is drawn only for new keys and passwords.
//!
//! - `certificate_authority.rs`: the certificate authority of the namespace.
//! - `server_certificate.rs`: the server certificate of an instance.
//! - `superuser_password.rs`: the superuser's password.
//! - `secret_references.rs`: checks of secrets that users provide instead.

mod certificate_authority;
mod secret_references;
mod server_certificate;
mod superuser_password;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use xxhash_rust::xxh3::xxh3_64;

pub use certificate_authority::{AUTHORITY_NAME, Authority};
pub use secret_references::{
    SecretError, SecretReference, check_secret, referenced_secrets, user_certificate_secret, user_password_secret,
};
pub use server_certificate::{certificate_secret, certificate_secret_name, subject_names};
pub use superuser_password::{superuser_secret, superuser_secret_name};

/// Key of the certificate chain in a secret of the type kubernetes.io/tls.
pub const CERTIFICATE_KEY: &str = "tls.crt";
/// Key of the private key in a secret of the type kubernetes.io/tls.
pub const PRIVATE_KEY: &str = "tls.key";
/// Key of the authority's certificate, which is customary in secrets of the type kubernetes.io/tls.
pub const CA_CERTIFICATE_KEY: &str = "ca.crt";
/// Key of the password in a secret of the type kubernetes.io/basic-auth.
pub const PASSWORD_KEY: &str = "password";

const TLS_TYPE: &str = "kubernetes.io/tls";
/// Annotation with the time after which a secret is renewed. If it is removed, the secret is renewed at once.
const RENEW_AFTER_ANNOTATION: &str = "kiln.dev/renew-after";
/// Annotation with the hash of the inputs and contents of a secret.
const INPUT_HASH_ANNOTATION: &str = "kiln.dev/made-of";
/// Tolerated difference between the clocks of machines.
const CLOCK_SKEW_SECONDS: u64 = 3_600;

/// Returns whether a secret was made of `made_of` and is not yet due for renewal.
fn is_current(secret: &Secret, made_of: &str, now: Timestamp) -> bool {
    let annotation = |name: &str| secret.annotations().get(name).map(String::as_str);
    let renew_after = annotation(RENEW_AFTER_ANNOTATION).and_then(|text| text.parse::<Timestamp>().ok());
    annotation(INPUT_HASH_ANNOTATION) == Some(made_of) && renew_after.is_some_and(|renew_after| now < renew_after)
}

fn annotations(made_of: String, renew_after: Timestamp) -> BTreeMap<String, String> {
    [(INPUT_HASH_ANNOTATION, made_of), (RENEW_AFTER_ANNOTATION, renew_after.to_string())]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
}

/// Returns a hash of `texts`, by which a change is detected. Not cryptographic.
fn content_hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let all: String = texts.into_iter().flat_map(|text| [text, "\0"]).collect();
    format!("{:016x}", xxh3_64(all.as_bytes()))
}

/// Returns the value of a key as text, or `None` if it is missing, empty or not UTF-8.
fn secret_text<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let value = secret.data.as_ref()?.get(key)?;
    str::from_utf8(&value.0).ok().filter(|text| !text.is_empty())
}

fn secret_data<const N: usize>(values: [(&str, &str); N]) -> BTreeMap<String, ByteString> {
    values.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).into()
}

/// Returns the time `seconds` after `now`.
fn add_seconds(now: Timestamp, seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}
