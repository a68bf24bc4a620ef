//! Credentials that lie in files, which others replace while the server runs: the certificate that clients are shown
//! and the superuser's password. Kubernetes replaces the files of a secret so, and programs that renew certificates.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use txn::Transactions;
use types::{Clock, Health, Random, SqlError, with_causes};

use crate::certificate::Certificate;
use crate::superuser::SuperuserPassword;
use crate::tls::{TlsError, TlsFiles};

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

/// The credentials of a server.
pub struct Credentials {
    /// `None`: TLS is refused.
    certificate: Option<Certificate>,
    /// `None`: SQL says it.
    superuser_password: Option<SuperuserPassword>,
    /// Makes up verifiers for roles that do not exist.
    decoy_secret: [u8; 32],
    transactions: Arc<Transactions>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Credentials {
    /// Loads them from these files.
    ///
    /// # Errors
    /// [`TlsError`] where certificate or key cannot be used.
    pub fn load(
        tls: Option<&TlsFiles>,
        superuser_password: Option<&Path>,
        transactions: Arc<Transactions>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, TlsError> {
        let certificate = tls.map(Certificate::load).transpose()?;
        let superuser_password = superuser_password.map(SuperuserPassword::new);
        let mut decoy_secret = [0; 32];
        random.fill(&mut decoy_secret);
        Ok(Self { certificate, superuser_password, decoy_secret, transactions, clock, random })
    }

    /// The certificate that clients are shown; `None`: TLS is refused.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// The superuser's password, where a file and not SQL says it.
    #[must_use]
    pub fn superuser_password(&self) -> Option<&SuperuserPassword> {
        self.superuser_password.as_ref()
    }

    /// Makes up verifiers for roles that do not exist.
    #[must_use]
    pub fn decoy_secret(&self) -> &[u8; 32] {
        &self.decoy_secret
    }

    /// Gives the superuser the password of its file, where one was named. To be called before anyone connects.
    ///
    /// # Errors
    /// [`PasswordError`].
    pub fn set_superuser_password(&self) -> BoxFuture<'_, Result<(), PasswordError>> {
        Box::pin(async {
            match &self.superuser_password {
                Some(password) => password.set(&self.transactions, &*self.random).await,
                None => Ok(()),
            }
        })
    }

    /// Shows clients the certificate that the files have now, whenever it is another one, for as long as the server runs. One that cannot be used is
    /// logged, and the one before stays in force.
    pub fn keep_certificate<'a>(self: Arc<Self>, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_certificate_unboxed(health))
    }

    async fn keep_certificate_unboxed(self: Arc<Self>, health: &Health) {
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            self.look_at_certificate(health).await;
        }
    }

    /// Gives the superuser the password that its file has now, whenever it is another one, for as long as the server runs. What is no password is logged,
    /// and the one before stays in force.
    pub fn keep_superuser_password<'a>(self: Arc<Self>, health: &'a Health) -> BoxFuture<'a, ()> {
        Box::pin(self.keep_superuser_password_unboxed(health))
    }

    async fn keep_superuser_password_unboxed(self: Arc<Self>, health: &Health) {
        loop {
            self.clock.sleep(LOOK_EVERY).await;
            self.look_at_superuser_password(health).await;
        }
    }

    /// One look at the files of the certificate.
    pub async fn look_at_certificate(self: &Arc<Self>, health: &Health) {
        let credentials = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || credentials.certificate.as_ref().map(Certificate::look)).await;
        match looked.ok().flatten().flatten() {
            Some(Ok(())) => {
                tracing::info!("clients are shown the certificate that its file has now");
                health.report_success();
            }
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn Error, "clients are shown the certificate from before");
                health.report_failure(with_causes(&error));
            }
            None => {}
        }
    }

    /// One look at the file of the superuser's password.
    pub async fn look_at_superuser_password(&self, health: &Health) {
        let Some(password) = &self.superuser_password else { return };
        match password.look(&self.transactions, &*self.random).await {
            Some(Ok(())) => health.report_success(),
            Some(Err(error)) => {
                tracing::warn!(error = &error as &dyn Error, "the superuser has the password from before");
                health.report_failure(with_causes(&error));
            }
            None => {}
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
