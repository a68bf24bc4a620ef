//! Certificate authority of the operator's namespace. No object owns it, so it outlives the instances.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio::sync::Mutex;

use super::FIELD_MANAGER;
use super::reconcile_error::ReconcileError;
use crate::credentials::{AUTHORITY_NAME, Authority};

/// Loader of the authority, which creates or renews it when there is no usable one.
pub(super) struct AuthorityProvider {
    client: Client,
    /// Lock that lets only one of several concurrent reconciliations create the authority.
    creation_lock: Mutex<()>,
}

impl AuthorityProvider {
    pub(super) fn new(client: Client) -> Self {
        Self { client, creation_lock: Mutex::default() }
    }

    /// Loads the authority, or creates or renews it, and publishes its certificate in the config map.
    pub(super) async fn load_or_create(&self, namespace: &str, now: Timestamp) -> Result<Authority, ReconcileError> {
        let _making = self.creation_lock.lock().await;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let there = secrets.get_opt(AUTHORITY_NAME).await?;
        let authority = match there.as_ref().and_then(|there| Authority::from_secret(there, namespace, now)) {
            Some(authority) => authority,
            None => {
                let is_new = there.is_none();
                tracing::info!(namespace, is_new, "creating the certificate authority of the namespace");
                let made = Authority::create(namespace, there.as_ref(), now)?;
                let mut secret = made.secret().clone();
                match there {
                    None => secrets.create(&PostParams::default(), &secret).await?,
                    Some(there) => {
                        // Fails with a conflict if the secret has been changed since it was read.
                        secret.metadata.resource_version = there.metadata.resource_version;
                        secrets.replace(AUTHORITY_NAME, &PostParams::default(), &secret).await?
                    }
                };
                made
            }
        };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let wanted = authority.config_map(namespace);
        if maps.get_opt(AUTHORITY_NAME).await?.is_none_or(|there| there.data != wanted.data) {
            maps.patch(AUTHORITY_NAME, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&wanted)).await?;
        }
        Ok(authority)
    }
}
