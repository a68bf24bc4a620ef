//! The instance's side of its worker processes: certificate authority, join listener and worker host.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control_plane::TokenVerifier;
use futures::future::BoxFuture;
use rcgen::KeyPair;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use types::{Clock, Random};

use crate::certificate_authority::{Authority, AuthorityError, CERTIFICATE_VALIDITY};
use crate::dedicated_thread::DedicatedThread;
use crate::join::serve_join;
use crate::launcher_command::Launcher;
use crate::mutual_tls::{CertificateName, Credentials, TlsIdentity};
use crate::processes::WorkerProcesses;
use crate::task_dialer::TlsDialer;
use crate::tls_listener::listen;

/// Certificates are renewed after their validity divided by this.
const RENEWALS_PER_VALIDITY: u32 = 2;

/// Settings of the worker processes of an instance.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// Data folder of the instance, which holds the certificate authority.
    pub data_folder: PathBuf,
    /// Folder of the worker roster, with one subfolder for each slot.
    pub workers_folder: PathBuf,
    /// Address of the join listener, which workers must be able to reach. Port 0 means the port of the previous
    /// instance if it is still free, otherwise any free port.
    pub join_address: SocketAddr,
    /// Program to start as `program worker --join …`.
    pub program: PathBuf,
    /// Command that starts the program.
    pub launcher: Launcher,
    /// Environment variables for the program, in addition to those of this process.
    pub environment: Vec<(String, String)>,
    /// Storage URL as for `kiln serve --storage`, which other processes must be able to read.
    pub storage: String,
    /// Query memory of the instance in bytes, of which each worker gets a share.
    pub memory_bytes: u64,
    /// Memory of the instance's own cache in bytes. Workers divide their share between queries and cache in the same
    /// ratio.
    pub cache_bytes: u64,
    /// Disk space for the caches of all workers together, in bytes.
    pub cache_disk_bytes: u64,
    /// Divisor of the free disk space that the caches may use: 4 means a quarter.
    pub cache_disk_divisor: u64,
    /// Bytes to keep free on the disk of `folder`.
    pub reserve_bytes: u64,
    /// Time that workers try to reconnect to a lost instance before they exit.
    pub reconnect_timeout: Duration,
    /// Verifier of the tokens of workers that this process has not started; `None` if such workers are not accepted.
    pub token_verifier: Option<Arc<dyn TokenVerifier>>,
}

/// Failure to open the worker processes of an instance.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the instance's own certificate cannot be used")]
    Identity(#[from] rustls::Error),
    #[error("could not create folder {folder}")]
    Folder { folder: PathBuf, source: io::Error },
    #[error("workers cannot connect to wildcard address {address}: name an address of this machine that they reach")]
    WildcardAddress { address: SocketAddr },
    #[error("could not listen for workers on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("could not start the thread for the connections of workers")]
    Thread(#[source] io::Error),
}

/// The worker processes of an instance.
///
/// Dropping it has the effect of a crash: workers keep running for a while and try to reconnect to the next instance.
#[derive(Debug)]
pub struct Fleet {
    processes: Arc<WorkerProcesses>,
    authority: String,
    /// The join listener and the renewal of certificates.
    tasks: JoinSet<()>,
    /// Thread of the tasks, so that busy query threads cannot delay heartbeats.
    _thread: DedicatedThread,
}

impl Fleet {
    /// Opens the join listener at the previous instance's address if possible, and takes over its workers.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn open(
        settings: FleetSettings,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> BoxFuture<'static, Result<Self, FleetError>> {
        Box::pin(Self::open_unboxed(settings, clock, random))
    }

    async fn open_unboxed(
        settings: FleetSettings,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Result<Self, FleetError> {
        std::fs::create_dir_all(&settings.workers_folder)
            .map_err(|source| FleetError::Folder { folder: settings.workers_folder.clone(), source })?;
        let authority = Arc::new(Authority::open(&settings.data_folder, Arc::clone(&clock))?);
        let certificate = authority.certificate_pem();
        let key = KeyPair::generate().map_err(AuthorityError::from)?;
        let credentials = Credentials::new(sign_identity(&authority, &key)?);
        // Workers with tokens are not started here and know the address from elsewhere.
        if settings.join_address.ip().is_unspecified() && settings.token_verifier.is_none() {
            return Err(FleetError::WildcardAddress { address: settings.join_address });
        }
        let thread = DedicatedThread::start("fleet").map_err(FleetError::Thread)?;
        let (wanted, earlier) = (settings.join_address, WorkerProcesses::previous_address(&settings));
        let opening = thread.runtime().spawn(async move {
            let listener = bind_join_listener(wanted, earlier).await?;
            Ok::<_, io::Error>((listener.local_addr()?, listener))
        });
        let opened = opening.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (address, listener) = opened.map_err(|source| FleetError::Listen { address: wanted, source })?;
        let dialer = TlsDialer::new(Arc::clone(&credentials), Arc::clone(&clock));
        let processes =
            WorkerProcesses::open(settings, Arc::clone(&authority), address, dialer, Arc::clone(&clock), random);
        let mut tasks = JoinSet::new();
        let listening = {
            let (registry, credentials, join_clock) =
                (Arc::clone(&processes), Arc::clone(&credentials), Arc::clone(&clock));
            let config = move || Arc::clone(&credentials.current().join_server);
            listen(listener, config, Arc::clone(&clock), move |pending| {
                serve_join(Arc::clone(&registry), pending, Arc::clone(&join_clock))
            })
        };
        tasks.spawn_on(listening, thread.runtime());
        let renewing = {
            let (processes, credentials, clock) =
                (Arc::clone(&processes), Arc::clone(&credentials), Arc::clone(&clock));
            async move {
                loop {
                    clock.sleep(CERTIFICATE_VALIDITY / RENEWALS_PER_VALIDITY).await;
                    match sign_identity(&authority, &key) {
                        Ok(identity) => credentials.renew(identity),
                        Err(error) => tracing::error!(%error, "could not renew the instance's certificate"),
                    }
                    processes.renew_certificates();
                }
            }
        };
        tasks.spawn_on(renewing, thread.runtime());
        Ok(Self { processes, authority: certificate, tasks, _thread: thread })
    }

    /// Returns the authority's certificate as PEM, with which workers authenticate the instance.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority
    }

    /// Returns the host of the worker processes, for a control plane.
    #[must_use]
    pub fn processes(&self) -> &Arc<WorkerProcesses> {
        &self.processes
    }

    /// Stops all workers that this process has started and waits for their exit; kills those that do not exit in time.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.processes.close())
    }

    /// Closes the join listener and leaves the workers to the next instance, as after a crash.
    pub fn abandon(self) -> BoxFuture<'static, ()> {
        Box::pin(self.abandon_unboxed())
    }

    async fn abandon_unboxed(mut self) {
        self.tasks.shutdown().await;
    }

    /// Kills all workers immediately.
    pub fn kill(&self) {
        self.processes.kill();
    }
}

fn sign_identity(authority: &Authority, key: &KeyPair) -> Result<TlsIdentity, FleetError> {
    let certificate = authority.sign(CertificateName::Instance, key.public_key_raw())?;
    Ok(TlsIdentity::new(key, &certificate, authority.certificate())?)
}

/// Binds the join listener: to the `earlier` address if `wanted` leaves the port open, otherwise to `wanted`.
async fn bind_join_listener(wanted: SocketAddr, earlier: Option<SocketAddr>) -> io::Result<TcpListener> {
    let earlier = earlier.filter(|earlier| earlier.ip() == wanted.ip() && wanted.port() == 0);
    if let Some(address) = earlier {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => tracing::warn!(
                %address, %error, "could not listen on the address of the previous instance; its workers cannot rejoin"
            ),
        }
    }
    TcpListener::bind(wanted).await
}
