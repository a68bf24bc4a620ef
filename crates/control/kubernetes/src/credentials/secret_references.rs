//! Checks of the secrets that an instance's spec names and users provide. Without them a pod would not start, and only
//! the events of the pod would tell why.

use k8s_openapi::api::core::v1::Secret;

use super::{CERTIFICATE_KEY, PASSWORD_KEY, PRIVATE_KEY, certificate_secret_name, superuser_secret_name};
use crate::resources::Instance;

/// Reference to a secret that must exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReference<'a> {
    /// Path of the field that names the secret.
    pub field: &'static str,
    /// Name of the secret.
    pub name: &'a str,
    /// Keys that must not be empty.
    pub keys: &'static [&'static str],
}

/// Reason why a secret cannot be used by the pod.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("there is no Secret {name}, which {field} names")]
    Missing { name: String, field: &'static str },
    #[error("the Secret {name}, which {field} names, has no {key}")]
    MissingKey { name: String, field: &'static str, key: &'static str },
}

/// Returns the secrets that users provide for the instance, without those that the operator creates.
#[must_use]
pub fn referenced_secrets(instance: &Instance) -> Vec<SecretReference<'_>> {
    let spec = &instance.spec;
    let storage = spec.storage.secret_name.as_deref().map(|name| ("spec.storage.secretName", name, &[][..]));
    let tls = user_certificate_secret(instance).map(|name| {
        let keys: &[&str] = &[CERTIFICATE_KEY, PRIVATE_KEY];
        ("spec.tls.secretName", name, keys)
    });
    let auth = user_password_secret(instance).map(|name| {
        let keys: &[&str] = &[PASSWORD_KEY];
        ("spec.auth.secretName", name, keys)
    });
    let all = [storage, tls, auth].into_iter().flatten();
    all.map(|(field, name, keys)| SecretReference { field, name, keys }).collect()
}

/// Returns the name of the user's secret with the superuser's password, or `None` if the operator creates the secret.
#[must_use]
pub fn user_password_secret(instance: &Instance) -> Option<&str> {
    instance.spec.auth.secret_name.as_deref().filter(|name| *name != superuser_secret_name(instance))
}

/// Returns the name of the user's secret with the server certificate, or `None` if the operator creates the secret.
#[must_use]
pub fn user_certificate_secret(instance: &Instance) -> Option<&str> {
    instance.spec.tls.secret_name.as_deref().filter(|name| *name != certificate_secret_name(instance))
}

/// Checks that a secret exists and has the required keys.
///
/// # Errors
/// Returns [`SecretError`] if it does not exist or a key is missing or empty.
pub fn check_secret(named: &SecretReference<'_>, secret: Option<&Secret>) -> Result<(), SecretError> {
    let SecretReference { field, name, keys } = *named;
    let Some(secret) = secret else { return Err(SecretError::Missing { name: name.to_owned(), field }) };
    let has =
        |key: &str| secret.data.as_ref().is_some_and(|data| data.get(key).is_some_and(|value| !value.0.is_empty()));
    match keys.iter().find(|key| !has(key)) {
        Some(key) => Err(SecretError::MissingKey { name: name.to_owned(), field, key }),
        None => Ok(()),
    }
}
