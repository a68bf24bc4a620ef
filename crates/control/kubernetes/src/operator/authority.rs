//! Certificate authority of the operator's namespace. No object owns it, so it outlives the instances.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use tokio::sync::Mutex;

use super::FIELD_MANAGER;
use super::error::ReconcileError;
use crate::credentials::{AUTHORITY, Authority};

/// Loader of the authority, which creates or renews it when there is no usable one.
pub(super) struct Authorities {
    client: Client,
    /// Lock that lets only one of several concurrent reconciliations create the authority.
    making: Mutex<()>,
}

impl Authorities {
    pub(super) fn new(client: Client) -> Self {
        Self { client, making: Mutex::default() }
    }

    /// Loads the authority, or creates or renews it, and publishes its certificate in the config map.
    pub(super) async fn of(&self, namespace: &str, now: Timestamp) -> Result<Authority, ReconcileError> {
        let _making = self.making.lock().await;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let there = secrets.get_opt(AUTHORITY).await?;
        let authority = match there.as_ref().and_then(|there| Authority::of(there, namespace, now)) {
            Some(authority) => authority,
            None => {
                tracing::info!(namespace, is_new = there.is_none(), "creating the authority's certificate");
                let made = Authority::make(namespace, there.as_ref(), now)?;
                let mut secret = made.secret().clone();
                match there {
                    None => secrets.create(&PostParams::default(), &secret).await?,
                    Some(there) => {
                        // Fails with a conflict if the secret has been changed since it was read.
                        secret.metadata.resource_version = there.metadata.resource_version;
                        secrets.replace(AUTHORITY, &PostParams::default(), &secret).await?
                    }
                };
                made
            }
        };
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let wanted = authority.config_map(namespace);
        if maps.get_opt(AUTHORITY).await?.is_none_or(|there| there.data != wanted.data) {
            maps.patch(AUTHORITY, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&wanted)).await?;
        }
        Ok(authority)
    }
}
