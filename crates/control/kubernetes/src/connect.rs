//! Finding the API server: as `kubectl` does by the kubeconfig, or as a pod does by what its node gives it.

use futures::future::BoxFuture;
use kube::{Api, Client};

use crate::resources::Instance;

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("could not find out where the API server of Kubernetes is")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("could not make a client of the API server")]
    Client(#[source] Box<kube::Error>),
}

/// Why an instance could not be asked about.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("could not read the Instance {name}")]
    Read { name: String, source: Box<kube::Error> },
}

/// Whether the instance, in the namespace of this pod, has begun with what it was to be restored to.
///
/// # Errors
/// The API server does not say.
pub fn was_restored(name: &str) -> BoxFuture<'_, Result<bool, LookError>> {
    Box::pin(look_for_restored(name))
}

async fn look_for_restored(name: &str) -> Result<bool, LookError> {
    let (client, namespace) = connect().await?;
    let read = Api::<Instance>::namespaced(client, &namespace).get(name).await;
    let instance = read.map_err(|source| LookError::Read { name: name.to_owned(), source: Box::new(source) })?;
    Ok(instance.status.is_some_and(|status| status.restored))
}

/// A client, and the namespace that is meant where none is named.
///
/// # Errors
/// [`ConnectError`]. Whether the API server answers is seen by what it is asked.
pub fn connect() -> BoxFuture<'static, Result<(Client, String), ConnectError>> {
    Box::pin(infer_client())
}

async fn infer_client() -> Result<(Client, String), ConnectError> {
    let config = kube::Config::infer().await.map_err(|source| ConnectError::Config(Box::new(source)))?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|source| ConnectError::Client(Box::new(source)))?;
    Ok((client, namespace))
}
