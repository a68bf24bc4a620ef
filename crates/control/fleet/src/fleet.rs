//! What an instance has for its workers: an authority, a door at which they come in, and the host that starts and ends them.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control_plane::Vouch;
use futures::future::BoxFuture;
use rcgen::KeyPair;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use types::{Clock, Random};

use crate::authority::{Authority, AuthorityError, VALIDITY};
use crate::dial::Dialer;
use crate::identity::{Credentials, Identity, Name};
use crate::join::receive;
use crate::launcher::Launcher;
use crate::listen::listen;
use crate::own_thread::OwnThread;
use crate::processes::Processes;

/// Certificates are renewed when half their time is over.
const RENEWALS: u32 = 2;

/// What an operator may choose about workers, and what they are told.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// Where the authority is kept.
    pub data: PathBuf,
    /// For what is known of workers, with a folder for each of their slots.
    pub folder: PathBuf,
    /// Where workers come in, an address that they reach. With port 0 it is where those of an earlier instance knock, or any that is free.
    pub door: SocketAddr,
    /// The program that is started as `program worker --join …`, by what, and variables that it gets besides this process's own.
    pub program: PathBuf,
    pub launcher: Launcher,
    pub variables: Vec<(String, String)>,
    /// As `kiln serve --storage` takes it: one that other processes can read.
    pub storage: String,
    /// The memory of which workers have shares, and what of it and beside it the instance has for its own cache, in bytes.
    pub memory_bytes: u64,
    pub cache_bytes: u64,
    /// What caches may take of the disk together: bytes, and one of so many parts of what is free.
    pub cache_disk_bytes: u64,
    pub cache_disk_part: u64,
    /// Bytes that are left free on the disk of `folder`.
    pub reserve_bytes: u64,
    /// How long workers look for an instance that is gone before they end.
    pub patience: Duration,
    /// Who says whose a token is, where workers come that are not started here.
    pub vouch: Option<Arc<dyn Vouch>>,
}

/// Why there can be no workers.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    #[error("the instance's own certificate cannot be used")]
    Identity(#[from] rustls::Error),
    #[error("could not make {folder}")]
    Folder { folder: PathBuf, source: io::Error },
    #[error("workers cannot come to {address}, which is no one address: say one of this machine's that they reach")]
    NoAddress { address: SocketAddr },
    #[error("could not listen for workers on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("could not start a thread")]
    Thread(#[source] io::Error),
}

/// The workers of an instance in processes of their own. Dropped, it is as if it were killed: workers live on for a while and look for the next one.
#[derive(Debug)]
pub struct Fleet {
    processes: Arc<Processes>,
    authority: String,
    /// Ended with it.
    tasks: JoinSet<()>,
    /// Where they run: statements keep nobody from hearing that a worker lives.
    _thread: OwnThread,
}

impl Fleet {
    /// Opens the door where the workers of an earlier instance knock, and takes these over.
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
        std::fs::create_dir_all(&settings.folder)
            .map_err(|source| FleetError::Folder { folder: settings.folder.clone(), source })?;
        let authority = Arc::new(Authority::open(&settings.data, Arc::clone(&clock))?);
        let certificate = authority.certificate_pem();
        let key = KeyPair::generate().map_err(AuthorityError::from)?;
        let credentials = Credentials::new(identity(&authority, &key)?);
        // Who is not started here has been told elsewhere where the door is.
        if settings.door.ip().is_unspecified() && settings.vouch.is_none() {
            return Err(FleetError::NoAddress { address: settings.door });
        }
        let thread = OwnThread::start("fleet").map_err(FleetError::Thread)?;
        let (wanted, earlier) = (settings.door, Processes::earlier_address(&settings));
        let opening = thread.runtime().spawn(async move {
            let listener = door(wanted, earlier).await?;
            Ok::<_, io::Error>((listener.local_addr()?, listener))
        });
        let opened = opening.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        let (address, listener) = opened.map_err(|source| FleetError::Listen { address: wanted, source })?;
        let dialer = Dialer::new(Arc::clone(&credentials), Arc::clone(&clock));
        let processes = Processes::open(settings, Arc::clone(&authority), address, dialer, Arc::clone(&clock), random);
        let mut tasks = JoinSet::new();
        let listening = {
            let (desk, credentials, of_guests) = (Arc::clone(&processes), Arc::clone(&credentials), Arc::clone(&clock));
            let config = move || Arc::clone(&credentials.current().joined);
            listen(listener, config, Arc::clone(&clock), move |stranger| {
                receive(Arc::clone(&desk), stranger, Arc::clone(&of_guests))
            })
        };
        tasks.spawn_on(listening, thread.runtime());
        let renewing = {
            let (processes, credentials, clock) =
                (Arc::clone(&processes), Arc::clone(&credentials), Arc::clone(&clock));
            async move {
                loop {
                    clock.sleep(VALIDITY / RENEWALS).await;
                    match identity(&authority, &key) {
                        Ok(identity) => credentials.renew(identity),
                        Err(error) => tracing::error!(%error, "the instance's certificate cannot be renewed"),
                    }
                    processes.renew_certificates();
                }
            }
        };
        tasks.spawn_on(renewing, thread.runtime());
        Ok(Self { processes, authority: certificate, tasks, _thread: thread })
    }

    /// The certificate, as PEM, by which workers know the instance before they show it anything.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The host of these workers, for a control plane.
    #[must_use]
    pub fn processes(&self) -> &Arc<Processes> {
        &self.processes
    }

    /// Ends all workers, and completes when they have; who does not end by itself is killed after some seconds.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.processes.close())
    }

    /// Closes the door and leaves the workers to whoever opens it next, as if the process had been killed.
    pub fn abandon(self) -> BoxFuture<'static, ()> {
        Box::pin(self.abandon_unboxed())
    }

    async fn abandon_unboxed(mut self) {
        self.tasks.shutdown().await;
    }

    /// Ends all workers at once.
    pub fn kill(&self) {
        self.processes.kill();
    }
}

fn identity(authority: &Authority, key: &KeyPair) -> Result<Identity, FleetError> {
    let certificate = authority.sign(Name::Instance, key.public_key_raw())?;
    Ok(Identity::new(key, &certificate, authority.certificate())?)
}

/// Of the places that are `wanted`, the one where workers knocked before, or wherever there is room.
async fn door(wanted: SocketAddr, earlier: Option<SocketAddr>) -> io::Result<TcpListener> {
    let earlier = earlier.filter(|earlier| earlier.ip() == wanted.ip() && wanted.port() == 0);
    if let Some(address) = earlier {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => tracing::warn!(%address, %error, "the workers of an earlier run cannot come back"),
        }
    }
    TcpListener::bind(wanted).await
}
