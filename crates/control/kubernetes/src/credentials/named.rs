//! Secrets that an instance names and others have made: a pod that needs one waits for it, and says so only to who looks at the pod.

use k8s_openapi::api::core::v1::Secret;

use super::{CERTIFICATE_KEY, PASSWORD_KEY, PRIVATE_KEY, certificate_name, superuser_name};
use crate::resources::Instance;

/// A secret that has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<'a> {
    /// What names it.
    pub field: &'static str,
    pub name: &'a str,
    /// What it has to have.
    pub keys: &'static [&'static str],
}

/// Why a pod cannot have it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("there is no Secret {name}, which {field} names")]
    Missing { name: String, field: &'static str },
    #[error("the Secret {name}, which {field} names, has no {key}")]
    WithoutKey { name: String, field: &'static str, key: &'static str },
}

/// All that the instance names.
#[must_use]
pub fn named(instance: &Instance) -> Vec<Named<'_>> {
    let spec = &instance.spec;
    let storage = spec.storage.secret_name.as_deref().map(|name| ("spec.storage.secretName", name, &[][..]));
    let tls = named_certificate(instance).map(|name| {
        let keys: &[&str] = &[CERTIFICATE_KEY, PRIVATE_KEY];
        ("spec.tls.secretName", name, keys)
    });
    let auth = named_password(instance).map(|name| {
        let keys: &[&str] = &[PASSWORD_KEY];
        ("spec.auth.secretName", name, keys)
    });
    let all = [storage, tls, auth].into_iter().flatten();
    all.map(|(field, name, keys)| Named { field, name, keys }).collect()
}

/// Who else has made the superuser's password; nobody where it is the secret that the operator makes.
#[must_use]
pub fn named_password(instance: &Instance) -> Option<&str> {
    instance.spec.auth.secret_name.as_deref().filter(|name| *name != superuser_name(instance))
}

/// Likewise the certificate.
#[must_use]
pub fn named_certificate(instance: &Instance) -> Option<&str> {
    instance.spec.tls.secret_name.as_deref().filter(|name| *name != certificate_name(instance))
}

/// Whether it has what it must.
///
/// # Errors
/// [`Unusable`].
pub fn usable(named: &Named<'_>, secret: Option<&Secret>) -> Result<(), Unusable> {
    let Named { field, name, keys } = *named;
    let Some(secret) = secret else { return Err(Unusable::Missing { name: name.to_owned(), field }) };
    let has =
        |key: &str| secret.data.as_ref().is_some_and(|data| data.get(key).is_some_and(|value| !value.0.is_empty()));
    match keys.iter().find(|key| !has(key)) {
        Some(key) => Err(Unusable::WithoutKey { name: name.to_owned(), field, key }),
        None => Ok(()),
    }
}
