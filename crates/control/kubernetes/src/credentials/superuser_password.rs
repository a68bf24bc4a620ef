//! Superuser's password, which the operator generates unless the user provides a secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use types::Random;

use super::{PASSWORD_KEY, secret_data, secret_text};
use crate::instance::metadata;
use crate::resources::Instance;

const BASIC_AUTH_TYPE: &str = "kubernetes.io/basic-auth";
const USERNAME_KEY: &str = "username";
/// Superuser role, which exists in every new catalog.
const SUPERUSER: &str = "kiln";
/// Random bytes of a generated password: 192 bits, 32 characters in base64.
const RANDOM_BYTES: usize = 24;

/// Returns the name of the secret that the operator creates.
#[must_use]
pub fn superuser_secret_name(instance: &Instance) -> String {
    format!("{}-superuser", instance.name_any())
}

/// Returns the desired secret with the password. A password in `there`, the existing secret of the instance, is kept
/// even if a user has put it there; otherwise one is generated.
#[must_use]
pub fn superuser_secret(instance: &Instance, there: Option<&Secret>, random: &dyn Random) -> Secret {
    let existing_password = there.and_then(|there| secret_text(there, PASSWORD_KEY)).map(str::to_owned);
    let password = existing_password.unwrap_or_else(|| {
        let mut random_bytes = [0; RANDOM_BYTES];
        random.fill(&mut random_bytes);
        URL_SAFE_NO_PAD.encode(random_bytes)
    });
    Secret {
        metadata: metadata(instance, superuser_secret_name(instance)),
        type_: Some(BASIC_AUTH_TYPE.to_owned()),
        data: Some(secret_data([(USERNAME_KEY, SUPERUSER), (PASSWORD_KEY, &password)])),
        ..Secret::default()
    }
}
