//! Finding the API server: as `kubectl` does by the kubeconfig, or as a pod does by what its node gives it.

use kube::Client;

/// Why there is no way to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("could not find out where the API server of Kubernetes is")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("could not make a client of the API server")]
    Client(#[source] Box<kube::Error>),
}

/// A client, and the namespace that is meant where none is named.
///
/// # Errors
/// [`ConnectError`]. Whether the API server answers is seen by what it is asked.
pub async fn connect() -> Result<(Client, String), ConnectError> {
    let config = kube::Config::infer().await.map_err(|source| ConnectError::Config(Box::new(source)))?;
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).map_err(|source| ConnectError::Client(Box::new(source)))?;
    Ok((client, namespace))
}
