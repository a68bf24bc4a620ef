//! What proves who is who to the clients of a namespace's instances, as secrets: the authority that signs certificates (`authority.rs`), each instance's certificate
//! (`certificate.rs`), and its superuser's password (`password.rs`). What there is and is still good stays as it is; only what is made anew takes its chance. What an
//! instance's user has made in their place is only asked for (`named.rs`).

mod authority;
mod certificate;
mod named;
mod password;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use xxhash_rust::xxh3::xxh3_64;

pub use authority::{AUTHORITY, Authority};
pub use certificate::{certificate, certificate_name, names};
pub use named::{Named, Unusable, named, named_certificate, named_password, usable};
pub use password::{superuser, superuser_name};

/// The keys of a secret of the type kubernetes.io/tls, and the one that others add for who signed it.
pub const CERTIFICATE_KEY: &str = "tls.crt";
pub const PRIVATE_KEY: &str = "tls.key";
pub const AUTHORITY_KEY: &str = "ca.crt";
/// The key of a secret of the type kubernetes.io/basic-auth.
pub const PASSWORD_KEY: &str = "password";

const TLS_TYPE: &str = "kubernetes.io/tls";
/// Where a secret says until when nothing need be done about it. Whoever takes this away has it made anew.
const RENEW_AFTER: &str = "kiln.dev/renew-after";
/// Where it says what it was made of.
const MADE_OF: &str = "kiln.dev/made-of";
/// Clocks of machines may differ by so much.
const CLOCK_SKEW_SECONDS: u64 = 3_600;

/// What of a secret is not yet too old, and was made of this.
fn is_good(secret: &Secret, made_of: &str, now: Timestamp) -> bool {
    let annotation = |name: &str| secret.annotations().get(name).map(String::as_str);
    let renew_after = annotation(RENEW_AFTER).and_then(|text| text.parse::<Timestamp>().ok());
    annotation(MADE_OF) == Some(made_of) && renew_after.is_some_and(|renew_after| now < renew_after)
}

fn annotations(made_of: String, renew_after: Timestamp) -> BTreeMap<String, String> {
    [(MADE_OF, made_of), (RENEW_AFTER, renew_after.to_string())].map(|(name, value)| (name.to_owned(), value)).into()
}

/// A few letters for texts, by which it is seen that they are others.
fn mark<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let all: String = texts.into_iter().flat_map(|text| [text, "\0"]).collect();
    format!("{:016x}", xxh3_64(all.as_bytes()))
}

/// The text of a key.
fn text<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let value = secret.data.as_ref()?.get(key)?;
    str::from_utf8(&value.0).ok().filter(|text| !text.is_empty())
}

fn data<const N: usize>(values: [(&str, &str); N]) -> BTreeMap<String, ByteString> {
    values.map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec()))).into()
}

/// So many seconds from now on.
fn after(now: Timestamp, seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
}
