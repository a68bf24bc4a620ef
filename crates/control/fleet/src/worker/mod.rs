//! A worker process: joins an instance, runs tasks of its queries, and exits when it is told to or the instance is
//! lost.
//!
//! - `instance_connection.rs`: the connection to the instance
//! - `scheduler_config.rs`: configuration of the scheduler from the assigned resources
//! - `cache_handover.rs`: transfer of cache blocks between workers
//! - `shard_announcements.rs`: pre-warming of the cache with new shards
//!
//! Tasks are run by [`exchange::SingleWorker`].

mod cache_handover;
mod instance_connection;
mod scheduler_config;
mod shard_announcements;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster_model::{ClusterId, WorkerId};
use exchange::{ByteStream, Channels, Worker};
use futures::future::BoxFuture;
use futures::stream;
use instance_connection::{ConnectionEnd, JoinAnswer, JoinClient, Stream};
use objects::{FolderDisk, Objects};
use rcgen::KeyPair;
use rustls_pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::Instrument;
use types::{Clock, DiskReserve, Random, ServiceHealth, SqlError};
use url::Url;

use crate::dedicated_thread::DedicatedThread;
use crate::join::{Base64Bytes, HandoverReport, HandoverRequest, Heartbeat, Welcome, WorkerResources};
use crate::join_credential::JoinCredential;
use crate::mutual_tls::{CertificateName, ConnectionPurpose, Credentials, TlsIdentity};
use crate::slot_folder::SlotFolder;
use crate::task_dialer::TlsDialer;
use crate::tls_listener::{PendingConnection, listen};

/// Interval of attempts to reach the instance.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Interval of attempts after a refusal that may be temporary.
const REFUSED_RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Accepted task connections that may wait to be served.
const ACCEPT_QUEUE_LENGTH: usize = 16;

/// Settings of a worker process.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// `host:port` of the instance's join listener.
    pub instance_address: String,
    /// Credential of the first join.
    pub credential: JoinCredential,
    /// Folder for cache and spill files on the worker's own disk; `None` for the folder that the instance assigns.
    pub folder: Option<PathBuf>,
    /// Address of the task listener; `None` for any free port of the local address of the connection to the instance.
    /// For a wildcard address, that local address is announced.
    pub listen: Option<SocketAddr>,
    /// Time that the worker tries to reach the instance before it exits.
    pub reconnect_timeout: Duration,
    /// Version of the program, as reported to the instance.
    pub version: String,
}

/// Reason for a worker's regular exit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerExit {
    /// The instance, or a termination signal, stopped the worker.
    Stopped,
    /// The instance refused the worker, for this reason.
    Refused(String),
    /// The instance could not be reached in time.
    InstanceUnreachable,
}

/// Failure of a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("could not generate the worker's private key")]
    Key(#[from] rcgen::Error),
    #[error("the certificate from the instance is not usable")]
    Certificate(#[from] rustls::Error),
    #[error("could not use the folder for the worker's cache")]
    Folder(#[source] io::Error),
    #[error("the worker could not open the object storage")]
    Storage(#[from] objects::Error),
    #[error("the worker could not start: {}", .0.message)]
    Start(SqlError),
    #[error("the worker could not listen for tasks on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the worker's listener for tasks has stopped")]
    TaskListenerStopped,
    #[error("could not start the thread for the connection to the instance")]
    Thread(#[source] io::Error),
    #[error("could not determine the local address of the connection to the instance")]
    Address(#[source] io::Error),
    #[error("a background task of the worker has panicked")]
    TaskPanicked,
}

/// Parses the URL `kiln://host:port` of an instance into `host:port`.
///
/// # Errors
/// A message about an invalid URL.
pub fn parse_instance_url(url: &str) -> Result<String, String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    let is_whole = parsed.scheme() == "kiln" && matches!(parsed.path(), "" | "/");
    match (parsed.host_str(), parsed.port()) {
        (Some(host), Some(port)) if is_whole => Ok(format!("{host}:{port}")),
        _ => Err("expected kiln://host:port".to_owned()),
    }
}

/// Runs a worker until the instance stops it or `told` completes. After `told`, a worker with a token finishes its
/// tasks first and exits when the instance allows it.
///
/// Tasks run on the caller's runtime. The connection to the instance has a thread of its own, so that heartbeats are
/// sent while all other threads are busy.
///
/// # Errors
/// [`WorkerError`] if it cannot start or continue.
pub fn run(
    settings: WorkerSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    terminated: BoxFuture<'static, ()>,
) -> BoxFuture<'static, Result<WorkerExit, WorkerError>> {
    Box::pin(run_unboxed(settings, clock, random, terminated))
}

async fn run_unboxed(
    settings: WorkerSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    terminated: BoxFuture<'static, ()>,
) -> Result<WorkerExit, WorkerError> {
    let own = DedicatedThread::start("link").map_err(WorkerError::Thread)?;
    let is_by_token = settings.credential.is_token();
    let (leave, leaving) = watch::channel(false);
    let working = join_and_serve(settings, leaving, clock, random, Handle::current());
    let mut working = own.runtime().spawn(working.in_current_span());
    tokio::select! {
        biased;
        () = terminated => {}
        ended = &mut working => return ended.unwrap_or(Err(WorkerError::TaskPanicked)),
    }
    if !is_by_token {
        return Ok(WorkerExit::Stopped);
    }
    leave.send_replace(true);
    working.await.unwrap_or(Err(WorkerError::TaskPanicked))
}

/// Joins the instance, starts serving tasks, and reconnects whenever the connection is lost.
async fn join_and_serve(
    settings: WorkerSettings,
    leaving: watch::Receiver<bool>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    tasks: Handle,
) -> Result<WorkerExit, WorkerError> {
    let key = KeyPair::generate()?;
    let caller = JoinClient { settings: &settings, key: &key, clock: &clock, terminating: &leaving };
    let (mut stream, welcome) = match join_with_retries(&caller, None).await {
        Ok(come_in) => come_in,
        Err(ended) => return Ok(ended),
    };
    let authority = settings.credential.authority().clone();
    let identity = TlsIdentity::new(&key, &CertificateDer::from(welcome.certificate.0.clone()), &authority)?;
    let credentials = Credentials::new(identity);
    let reached_by = stream.get_ref().0.local_addr().map_err(WorkerError::Address)?.ip();
    let start = TaskServerConfig {
        listen: settings.listen.unwrap_or_else(|| SocketAddr::new(reached_by, 0)),
        version: settings.version.clone(),
        folder: settings.folder.clone(),
        welcome: (*welcome).clone(),
        credentials: Arc::clone(&credentials),
        clock: Arc::clone(&clock),
        random,
    };
    let starting = tasks.spawn(TaskServer::start(start).in_current_span());
    let mut serving = starting.await.unwrap_or(Err(WorkerError::TaskPanicked))?;
    let assignment = welcome.assignment;
    let handler = MessageHandler {
        key: &key,
        authority,
        credentials: &credentials,
        worker: &serving.worker,
        disk: &serving.disk,
        slot: (assignment.cluster, assignment.slot),
        clock: &clock,
        tasks: &tasks,
    };
    loop {
        let ended = tokio::select! {
            ended = instance_connection::run_connection(stream, &handler, serving.address, leaving.clone(), &clock) => ended,
            _ = serving.tasks.join_next() => return Err(WorkerError::TaskListenerStopped),
        };
        match ended {
            ConnectionEnd::Stopped => return Ok(WorkerExit::Stopped),
            ConnectionEnd::Lost(error) => tracing::warn!(%error, "lost the connection to the instance; reconnecting"),
        }
        let welcome;
        (stream, welcome) = match join_with_retries(&caller, Some(&*credentials)).await {
            Ok(come_in) => come_in,
            Err(ended) => return Ok(ended),
        };
        if welcome.assignment != assignment {
            return Ok(WorkerExit::Refused("the instance has assigned another slot, storage or folder".to_owned()));
        }
        handler.install_certificate(&welcome.certificate);
        handler.configure(&welcome.resources);
        tracing::info!("reconnected to the instance");
    }
}

/// Tries to join until the instance accepts or refuses the worker, or the patience is over.
async fn join_with_retries(
    caller: &JoinClient<'_>,
    credentials: Option<&Credentials>,
) -> Result<(Stream, Box<Welcome>), WorkerExit> {
    let begun = caller.clock.monotonic();
    let mut leaving = caller.terminating.clone();
    loop {
        let mut pause = RETRY_INTERVAL;
        match caller.join(credentials).await {
            Ok(JoinAnswer::Welcome(stream, welcome)) => return Ok((stream, welcome)),
            // The verifier of tokens may not know this worker yet.
            Ok(JoinAnswer::Refused(reason)) if credentials.is_none() && caller.settings.credential.is_token() => {
                if caller.settings.reconnect_timeout <= caller.clock.monotonic().saturating_sub(begun) {
                    return Err(WorkerExit::Refused(reason));
                }
                tracing::warn!(reason, "the instance refused this worker; trying again");
                pause = REFUSED_RETRY_INTERVAL;
            }
            Ok(JoinAnswer::Refused(reason)) => return Err(WorkerExit::Refused(reason)),
            Err(error) => {
                if caller.settings.reconnect_timeout <= caller.clock.monotonic().saturating_sub(begun) {
                    tracing::warn!(%error, "could not reach the instance in time; giving up");
                    return Err(WorkerExit::InstanceUnreachable);
                }
                tracing::debug!(%error, "could not reach the instance; trying again");
            }
        }
        tokio::select! {
            () = caller.clock.sleep(pause) => {}
            // No instance is connected that could still need this worker.
            () = instance_connection::wait_until_true(&mut leaving) => return Err(WorkerExit::Stopped),
        }
    }
}

/// Task server of a worker.
struct TaskServer {
    worker: Worker,
    /// Disk of the cache and spill folders.
    disk: FolderDisk,
    /// Address of the task listener.
    address: SocketAddr,
    /// Background tasks, which end with the server.
    tasks: JoinSet<()>,
    /// Lock on the slot's folder.
    _folder: SlotFolder,
}

/// Arguments for starting the task server.
struct TaskServerConfig {
    listen: SocketAddr,
    version: String,
    folder: Option<PathBuf>,
    welcome: Welcome,
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl TaskServer {
    /// Claims the slot's folder, opens the storage and starts the listener for tasks.
    async fn start(start: TaskServerConfig) -> Result<Self, WorkerError> {
        let TaskServerConfig { listen: wanted, version, folder: own_folder, welcome, credentials, clock, random } =
            start;
        let assignment = &welcome.assignment;
        let all = own_folder.as_ref().unwrap_or(&assignment.folder);
        let folder = SlotFolder::claim(all, assignment.cluster, assignment.slot).map_err(WorkerError::Folder)?;
        let objects =
            Objects::open_with_reserve(&assignment.storage, assignment.reserve_bytes, Arc::clone(&clock), random)?;
        let config = scheduler_config::scheduler_config(&welcome.resources, &folder, assignment.reserve_bytes);
        let dialer = TlsDialer::new(Arc::clone(&credentials), Arc::clone(&clock));
        let worker =
            Worker::start(objects, &clock, &config, Channels::new(dialer), &version).map_err(WorkerError::Start)?;
        let failed = |source| WorkerError::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut tasks = JoinSet::new();
        let (arriving, arrived) = mpsc::channel::<io::Result<Box<dyn ByteStream>>>(ACCEPT_QUEUE_LENGTH);
        let (announce, announced) = mpsc::channel(shard_announcements::QUEUE_LENGTH);
        tasks.spawn(shard_announcements::read_ahead(worker.clone(), (assignment.cluster, assignment.slot), announced));
        tasks.spawn({
            let config = move || Arc::clone(&credentials.current().server);
            let (worker, server_clock) = (worker.clone(), Arc::clone(&clock));
            listen(listener, config, clock, move |PendingConnection { stream, permit }| {
                let (arriving, announce) = (arriving.clone(), announce.clone());
                let (worker, clock) = (worker.clone(), Arc::clone(&server_clock));
                async move {
                    match ConnectionPurpose::from_peer(&stream) {
                        ConnectionPurpose::Tasks => {
                            // The send fails only when the task server has stopped, which ends the worker.
                            let _ = arriving.send(Ok(Box::new(stream))).await;
                            drop(permit);
                        }
                        ConnectionPurpose::Blocks => {
                            drop(permit);
                            if let Err(error) = cache_handover::send_blocks(&worker, stream, &clock).await {
                                tracing::debug!(%error, "could not send all cache blocks to another worker");
                            }
                        }
                        // Only the instance may announce new shards.
                        ConnectionPurpose::Announcements if CertificateName::Instance.matches_peer(&stream) => {
                            drop(permit);
                            if let Err(error) =
                                shard_announcements::receive_announcements(&worker, stream, &announce, &clock).await
                            {
                                tracing::debug!(%error, "could not receive all announcements of new shards");
                            }
                        }
                        ConnectionPurpose::Announcements => {}
                    }
                }
            })
        });
        tasks.spawn({
            let worker = worker.clone();
            let incoming = stream::unfold(arrived, async |mut arrived| Some((arrived.recv().await?, arrived)));
            async move {
                if let Err(error) = worker.serve(incoming).await {
                    tracing::error!(%error, "task server failed");
                }
            }
        });
        let disk = FolderDisk::new(&folder.spill_folder());
        tasks.spawn({
            let reserve = DiskReserve {
                disk: Arc::new(FolderDisk::new(&folder.spill_folder())),
                bytes: assignment.reserve_bytes,
            };
            let worker = worker.clone();
            async move { worker.enforce_spill_limit(&reserve, &ServiceHealth::default()).await }
        });
        tracing::info!(cluster = %assignment.cluster, slot = assignment.slot, %address, "worker accepts tasks");
        Ok(Self { worker, disk, address, tasks, _folder: folder })
    }
}

/// Handler of the instance's messages: certificate, resources, cache hand-over and statistics of the worker.
struct MessageHandler<'a> {
    key: &'a KeyPair,
    authority: CertificateDer<'static>,
    credentials: &'a Arc<Credentials>,
    worker: &'a Worker,
    disk: &'a FolderDisk,
    slot: (ClusterId, u32),
    clock: &'a Arc<dyn Clock>,
    /// Runtime for everything but heartbeats.
    tasks: &'a Handle,
}

impl MessageHandler<'_> {
    /// Installs a renewed certificate.
    fn install_certificate(&self, certificate: &Base64Bytes) {
        match TlsIdentity::new(self.key, &CertificateDer::from(certificate.0.clone()), &self.authority) {
            Ok(identity) => self.credentials.renew(identity),
            // The old certificate stays valid for some days.
            Err(error) => {
                tracing::warn!(%error, "could not install the renewed certificate; the worker keeps its old one");
            }
        }
    }

    /// Applies new resources.
    fn configure(&self, resources: &WorkerResources) {
        let _threads_begin_there = self.tasks.enter();
        if let Err(error) = self.worker.configure(&scheduler_config::worker_limits(resources, self.disk)) {
            tracing::warn!(%error, "could not apply a new resource limit; the worker keeps its old threads");
        }
    }

    /// Warms the cache from other workers; completes when all have sent their blocks.
    fn warm_cache(&self, request: HandoverRequest) -> impl Future<Output = HandoverReport> + Send + 'static {
        let (worker, credentials) = (self.worker.clone(), Arc::clone(self.credentials));
        cache_handover::fetch_blocks(worker, credentials, self.slot, request, Arc::clone(self.clock))
    }

    /// Returns the current statistics for a heartbeat.
    fn heartbeat(&self) -> Heartbeat {
        let tiers = self.worker.cache_tiers();
        let counts = || {
            let memory = tiers.iter().filter(|tier| tier.tier == "memory");
            memory.flat_map(|tier| &tier.tables).map(|(_, counts)| counts)
        };
        let warming = self.worker.cache_warming_stats();
        Heartbeat {
            running: u32::try_from(self.worker.running_queries()).unwrap_or(u32::MAX),
            cache_bytes: counts().map(|counts| counts.bytes).sum(),
            cache_hits: counts().map(|counts| counts.hits).sum(),
            cache_misses: counts().map(|counts| counts.misses).sum(),
            prewarmed_shards: warming.shards,
            prewarmed_blocks: warming.blocks,
            prewarming_skipped: warming.dropped,
            memory_bytes: self.worker.memory_used() as u64,
        }
    }
}

impl WorkerSettings {
    /// Returns the worker's id: that of its ticket, or the random one of a worker with a token.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.credential.worker_id()
    }
}
