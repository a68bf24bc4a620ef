//! Client of the Kubernetes API server, configured by the kubeconfig like `kubectl` or by the pod's service account.

use futures::future::BoxFuture;
use kube::{Api, Client};

use crate::resources::Instance;

/// Failure to create a client of the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("could not find out where the Kubernetes API server is")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("could not create a client for the Kubernetes API server")]
    Client(#[source] Box<kube::Error>),
}

/// Failure to read an Instance.
#[derive(Debug, thiserror::Error)]
pub enum ReadInstanceError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("could not read the Instance {name}")]
    Read { name: String, source: Box<kube::Error> },
}

/// Returns whether the Instance `name`, in the namespace of this pod, was already restored from its storage.
///
/// # Errors
/// Returns [`ReadInstanceError`] if the API server cannot be reached or the Instance cannot be read.
pub fn was_restored(name: &str) -> BoxFuture<'_, Result<bool, ReadInstanceError>> {
    Box::pin(read_restored(name))
}

async fn read_restored(name: &str) -> Result<bool, ReadInstanceError> {
    let (client, namespace) = connect().await?;
    let read = Api::<Instance>::namespaced(client, &namespace).get(name).await;
    let instance =
        read.map_err(|source| ReadInstanceError::Read { name: name.to_owned(), source: Box::new(source) })?;
    Ok(instance.status.is_some_and(|status| status.restored))
}

/// Creates a client, and returns it with the default namespace of its configuration.
///
/// # Errors
/// Returns [`ConnectError`] if there is no usable configuration. No request is sent, so an API server that does not
/// answer is noticed by the first request only.
pub fn connect() -> BoxFuture<'static, Result<(Client, String), ConnectError>> {
    Box::pin(infer_client())
}

async fn infer_client() -> Result<(Client, String), ConnectError> {
    let config = kube::Config::infer().await.map_err(|source| ConnectError::Config(Box::new(source)))?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|source| ConnectError::Client(Box::new(source)))?;
    Ok((client, namespace))
}
