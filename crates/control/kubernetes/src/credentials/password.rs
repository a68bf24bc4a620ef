//! Superuser's password, which the operator generates unless the user provides a secret.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use types::Random;

use super::{PASSWORD_KEY, data, text};
use crate::instance::metadata;
use crate::resources::Instance;

const BASIC_AUTH_TYPE: &str = "kubernetes.io/basic-auth";
const USERNAME_KEY: &str = "username";
/// Superuser role, which exists in every new catalog.
const SUPERUSER: &str = "kiln";
/// Random bytes of a generated password: 192 bits, 32 characters in base64.
const CHANCE_BYTES: usize = 24;

/// Returns the name of the secret that the operator creates.
#[must_use]
pub fn superuser_name(instance: &Instance) -> String {
    format!("{}-superuser", instance.name_any())
}

/// Returns the desired secret with the password. A password in `there`, the existing secret of the instance, is kept
/// even if a user has put it there; otherwise one is generated.
#[must_use]
pub fn superuser(instance: &Instance, there: Option<&Secret>, random: &dyn Random) -> Secret {
    let kept = there.and_then(|there| text(there, PASSWORD_KEY)).map(str::to_owned);
    let password = kept.unwrap_or_else(|| {
        let mut chance = [0; CHANCE_BYTES];
        random.fill(&mut chance);
        URL_SAFE_NO_PAD.encode(chance)
    });
    Secret {
        metadata: metadata(instance, superuser_name(instance)),
        type_: Some(BASIC_AUTH_TYPE.to_owned()),
        data: Some(data([(USERNAME_KEY, SUPERUSER), (PASSWORD_KEY, &password)])),
        ..Secret::default()
    }
}
