//! Credentials in files: the server's certificate and the superuser's password. The files are reloaded when they change
//! while the server runs, as Kubernetes and certificate renewal programs replace them.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use txn::Transactions;
use types::{Clock, Random, ServiceHealth, SqlError, with_causes};

use crate::server_certificate::Certificate;
use crate::superuser_password::SuperuserPassword;
use crate::tls_acceptor::{TlsError, TlsFiles};

/// Interval at which the files are checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Error of setting the superuser's password from its file.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    #[error("could not read the superuser's password from {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("superuser password file {path} holds no password: it has to be one line of UTF-8 that is not empty")]
    NoPassword { path: PathBuf },
    #[error("could not store the superuser's password from {path} in the catalog: {}", error.message)]
    Refused { path: PathBuf, error: Box<SqlError> },
}

/// Credentials of a server.
pub struct Credentials {
    /// Certificate of the server; `None` if TLS is not configured.
    certificate: Option<Certificate>,
    /// Superuser's password from a file; `None` if SQL sets it.
    superuser_password: Option<SuperuserPassword>,
    /// Random key from which decoy verifiers are derived, for roles that do not exist.
    decoy_secret: [u8; 32],
    transactions: Arc<Transactions>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Credentials {
    /// Loads the certificate, and remembers the file of the superuser's password.
    ///
    /// # Errors
    /// [`TlsError`] if certificate or key cannot be used.
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

    /// Returns the certificate that clients are shown; `None` if TLS is not configured.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        self.certificate.as_ref()
    }

    /// Returns the superuser's password from a file; `None` if SQL sets it.
    #[must_use]
    pub fn superuser_password(&self) -> Option<&SuperuserPassword> {
        self.superuser_password.as_ref()
    }

    /// Returns the key of decoy verifiers.
    #[must_use]
    pub fn decoy_secret(&self) -> &[u8; 32] {
        &self.decoy_secret
    }

    /// Gives the superuser the password of its file, if one is configured. To be called before anyone connects.
    ///
    /// # Errors
    /// [`PasswordError`] if the file cannot be read, holds no password, or the catalog cannot be changed.
    pub fn set_superuser_password(&self) -> BoxFuture<'_, Result<(), PasswordError>> {
        Box::pin(async {
            match &self.superuser_password {
                Some(password) => password.set_from_file(&self.transactions, &*self.random).await,
                None => Ok(()),
            }
        })
    }

    /// Reloads the certificate when its files change, for as long as the server runs. One that cannot be used is
    /// logged, and the previous one stays in force.
    pub fn watch_certificate<'a>(self: Arc<Self>, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        Box::pin(self.watch_certificate_unboxed(health))
    }

    async fn watch_certificate_unboxed(self: Arc<Self>, health: &ServiceHealth) {
        loop {
            self.clock.sleep(CHECK_INTERVAL).await;
            self.reload_certificate_if_changed(health).await;
        }
    }

    /// Reloads the superuser's password when its file changes, for as long as the server runs. Invalid content is
    /// logged, and the previous password stays in force.
    pub fn watch_superuser_password<'a>(self: Arc<Self>, health: &'a ServiceHealth) -> BoxFuture<'a, ()> {
        Box::pin(self.watch_superuser_password_unboxed(health))
    }

    async fn watch_superuser_password_unboxed(self: Arc<Self>, health: &ServiceHealth) {
        loop {
            self.clock.sleep(CHECK_INTERVAL).await;
            self.reload_superuser_password_if_changed(health).await;
        }
    }

    /// Checks the certificate's files once, and reloads them if they have changed.
    pub async fn reload_certificate_if_changed(self: &Arc<Self>, health: &ServiceHealth) {
        let credentials = Arc::clone(self);
        let looked =
            tokio::task::spawn_blocking(move || credentials.certificate.as_ref().map(Certificate::reload_if_changed))
                .await;
        match looked.ok().flatten().flatten() {
            Some(Ok(())) => {
                tracing::info!("reloaded the TLS certificate: new connections get it");
                health.report_success();
            }
            Some(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "could not reload the TLS certificate: keeping the old one"
                );
                health.report_failure(with_causes(&error));
            }
            None => {}
        }
    }

    /// Checks the file of the superuser's password once, and reloads it if it has changed.
    pub async fn reload_superuser_password_if_changed(&self, health: &ServiceHealth) {
        let Some(password) = &self.superuser_password else { return };
        match password.reload_if_changed(&self.transactions, &*self.random).await {
            Some(Ok(())) => health.report_success(),
            Some(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "could not reload the superuser's password: keeping the old one"
                );
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
