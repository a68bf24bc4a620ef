//! What proves who is who and lies in files that somebody else replaces while the server runs: the certificate that clients are shown (`certificate.rs`)
//! and the superuser's password (`superuser.rs`). Kubernetes replaces the files of a secret so, and programs that renew certificates.

mod certificate;
mod superuser;
mod watched;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use types::SqlError;

use crate::gateway::Gateway;

pub(crate) use certificate::Certificate;
pub(crate) use superuser::SuperuserPassword;

/// Between looks whether a file is another one.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why the superuser has not the password of a file.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("could not read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} holds no password: it has to be one line of UTF-8 that is not empty")]
    NoPassword { path: PathBuf },
    #[error("the password of {path} could not be put into the catalog: {}", refused.message)]
    Refused { path: PathBuf, refused: Box<SqlError> },
}

impl Gateway {
    /// Gives the superuser the password of its file, where one was named. To be called before anyone connects.
    ///
    /// # Errors
    /// [`PasswordError`].
    pub async fn set_superuser_password(&self) -> Result<(), PasswordError> {
        match &self.superuser_password {
            Some(password) => password.set(&self.transactions, &*self.random).await,
            None => Ok(()),
        }
    }

    /// Goes on with what the files say now, whenever it is something else, for as long as the server runs. What cannot be used is logged, and
    /// what was before stays in force.
    pub async fn keep_credentials(self: Arc<Self>) {
        if self.certificate.is_none() && self.superuser_password.is_none() {
            return;
        }
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            self.look_at_credentials().await;
        }
    }

    /// One such look.
    pub(crate) async fn look_at_credentials(self: &Arc<Self>) {
        let gateway = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || gateway.certificate.as_ref().map(Certificate::look)).await;
        match looked.ok().flatten() {
            Some(Some(Ok(()))) => tracing::info!("clients are shown the certificate that its file has now"),
            Some(Some(Err(error))) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "clients are shown the certificate from before");
            }
            Some(None) | None => {}
        }
        if let Some(password) = &self.superuser_password
            && let Err(error) = password.look(&self.transactions, &*self.random).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the superuser has the password from before");
        }
    }
}
