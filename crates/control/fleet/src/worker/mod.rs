//! A worker: a process that joins an instance, runs tasks of its queries, and ends when it is told to or has nobody to work for.
//!
//! `link.rs` is the connection to the instance, `handover.rs` how it gets what others have cached, `loads.rs` what it does about new shards, `means.rs` what it takes of its machine. Tasks are `execution`'s.

mod handover;
mod link;
mod loads;
mod means;

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
use link::{Answer, Caller, LinkEnd, Stream};
use objects::{FolderDisk, Objects};
use rcgen::KeyPair;
use rustls_pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tracing::Instrument;
use types::{Clock, Health, Random, Reserve, SqlError};
use url::Url;

use crate::dial::Dialer;
use crate::identity::{Credentials, Errand, Identity, Name};
use crate::join::{Base64, Beat, Means, TakeOver, TookOver, Welcome};
use crate::listen::{Stranger, listen};
use crate::own_thread::OwnThread;
use crate::slot_folder::SlotFolder;
use crate::way_in::WayIn;

/// Between tries to reach the instance.
const KNOCK_EVERY: Duration = Duration::from_millis(100);
/// Likewise, where it was refused for the moment.
const REFUSED_EVERY: Duration = Duration::from_secs(2);
/// Connections of which nobody has begun to read yet.
const ARRIVED_MAX: usize = 16;

/// How a worker is started.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// `host:port` of the instance's door for workers.
    pub join: String,
    pub way_in: WayIn,
    /// A folder of its own disk for its cache and what it spills; the one that the instance says where nothing is said.
    pub folder: Option<PathBuf>,
    /// Where tasks are taken; any free port of the address by which the instance is reached where nothing is said. Where it is any address of the
    /// machine, the one by which the instance is reached is announced.
    pub listen: Option<SocketAddr>,
    /// How long it looks for an instance that is gone.
    pub patience: Duration,
    /// The program's version, as the instance is told it.
    pub version: String,
}

/// How a worker's life came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The instance said so, or whoever is in charge of the process.
    Told,
    /// The instance has none of this worker; for this reason.
    Refused(String),
    /// There is no instance any more.
    Abandoned,
}

/// Why a worker cannot work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("could not make a key")]
    Key(#[from] rcgen::Error),
    #[error("the certificate that the instance gave cannot be used")]
    Certificate(#[from] rustls::Error),
    #[error("could not use the folder for the worker's cache")]
    Folder(#[source] io::Error),
    #[error("could not open the storage")]
    Storage(#[from] objects::Error),
    #[error("could not start: {}", .0.message)]
    Start(SqlError),
    #[error("could not listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("could not take tasks any more")]
    Tasks,
    #[error("could not start a thread")]
    Thread(#[source] io::Error),
    #[error("could not tell by which address the instance is reached")]
    Address(#[source] io::Error),
    #[error("what talks to the instance has crashed")]
    Crashed,
}

/// Where an instance is found, `host:port`, of the URL `kiln://host:port`.
///
/// # Errors
/// What is wrong with it, in words.
pub fn parse_join(url: &str) -> Result<String, String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    let is_whole = parsed.scheme() == "kiln" && matches!(parsed.path(), "" | "/");
    match (parsed.host_str(), parsed.port()) {
        (Some(host), Some(port)) if is_whole => Ok(format!("{host}:{port}")),
        _ => Err("it is not kiln://host:port".to_owned()),
    }
}

/// Works until the instance, or `told`, says that it is enough; one that was not invited ends then what it does, and when the instance lets it go. Tasks run on the runtime of whoever calls this, and what talks to the instance on a thread
/// of its own: it says that the worker lives when all others are busy.
///
/// # Errors
/// [`WorkerError`], where it cannot begin or go on.
pub fn run(
    settings: WorkerSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    told: BoxFuture<'static, ()>,
) -> BoxFuture<'static, Result<Ended, WorkerError>> {
    Box::pin(run_unboxed(settings, clock, random, told))
}

async fn run_unboxed(
    settings: WorkerSettings,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    told: BoxFuture<'static, ()>,
) -> Result<Ended, WorkerError> {
    let own = OwnThread::start("link").map_err(WorkerError::Thread)?;
    let is_by_token = settings.way_in.is_by_token();
    let (leave, leaving) = watch::channel(false);
    let working = work(settings, leaving, clock, random, Handle::current());
    let mut working = own.runtime().spawn(working.in_current_span());
    tokio::select! {
        biased;
        () = told => {}
        ended = &mut working => return ended.unwrap_or(Err(WorkerError::Crashed)),
    }
    if !is_by_token {
        return Ok(Ended::Told);
    }
    leave.send_replace(true);
    working.await.unwrap_or(Err(WorkerError::Crashed))
}

async fn work(
    settings: WorkerSettings,
    leaving: watch::Receiver<bool>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    tasks: Handle,
) -> Result<Ended, WorkerError> {
    let key = KeyPair::generate()?;
    let caller = Caller { settings: &settings, key: &key, clock: &clock, leaving: &leaving };
    let (mut stream, welcome) = match knock(&caller, None).await {
        Ok(come_in) => come_in,
        Err(ended) => return Ok(ended),
    };
    let authority = settings.way_in.authority().clone();
    let identity = Identity::new(&key, &CertificateDer::from(welcome.certificate.0.clone()), &authority)?;
    let credentials = Credentials::new(identity);
    let reached_by = stream.get_ref().0.local_addr().map_err(WorkerError::Address)?.ip();
    let start = Start {
        listen: settings.listen.unwrap_or_else(|| SocketAddr::new(reached_by, 0)),
        version: settings.version.clone(),
        folder: settings.folder.clone(),
        welcome: (*welcome).clone(),
        credentials: Arc::clone(&credentials),
        clock: Arc::clone(&clock),
        random,
    };
    let starting = tasks.spawn(Serving::start(start).in_current_span());
    let mut serving = starting.await.unwrap_or(Err(WorkerError::Crashed))?;
    let place = welcome.place;
    let office = Office {
        key: &key,
        authority,
        credentials: &credentials,
        worker: &serving.worker,
        disk: &serving.disk,
        place: (place.cluster, place.slot),
        clock: &clock,
        tasks: &tasks,
    };
    loop {
        let ended = tokio::select! {
            ended = link::talk(stream, &office, serving.address, leaving.clone(), &clock) => ended,
            _ = serving.tasks.join_next() => return Err(WorkerError::Tasks),
        };
        match ended {
            LinkEnd::Told => return Ok(Ended::Told),
            LinkEnd::Lost(error) => tracing::warn!(%error, "the instance is gone; looking for it"),
        }
        let welcome;
        (stream, welcome) = match knock(&caller, Some(&*credentials)).await {
            Ok(come_in) => come_in,
            Err(ended) => return Ok(ended),
        };
        if welcome.place != place {
            return Ok(Ended::Refused("it was started for another storage or another folder".to_owned()));
        }
        office.certify(&welcome.certificate);
        office.configure(&welcome.means);
        tracing::info!("found the instance again");
    }
}

/// Looks for the instance until it answers, or for as long as patience lasts.
async fn knock(caller: &Caller<'_>, credentials: Option<&Credentials>) -> Result<(Stream, Box<Welcome>), Ended> {
    let begun = caller.clock.monotonic();
    let mut leaving = caller.leaving.clone();
    loop {
        let mut pause = KNOCK_EVERY;
        match caller.call(credentials).await {
            Ok(Answer::Welcome(stream, welcome)) => return Ok((stream, welcome)),
            // Who vouches for it may not know of it yet.
            Ok(Answer::Refused(reason)) if credentials.is_none() && caller.settings.way_in.is_by_token() => {
                if caller.settings.patience <= caller.clock.monotonic().saturating_sub(begun) {
                    return Err(Ended::Refused(reason));
                }
                tracing::warn!(reason, "the instance does not take this worker yet");
                pause = REFUSED_EVERY;
            }
            Ok(Answer::Refused(reason)) => return Err(Ended::Refused(reason)),
            Err(error) => {
                if caller.settings.patience <= caller.clock.monotonic().saturating_sub(begun) {
                    tracing::warn!(%error, "there is no instance any more");
                    return Err(Ended::Abandoned);
                }
                tracing::debug!(%error, "the instance is not there");
            }
        }
        tokio::select! {
            () = caller.clock.sleep(pause) => {}
            // There is nobody who could still want something of it.
            () = link::is_so(&mut leaving) => return Err(Ended::Told),
        }
    }
}

/// The part of a worker that runs tasks.
struct Serving {
    worker: Worker,
    disk: FolderDisk,
    address: SocketAddr,
    /// Ended with it.
    tasks: JoinSet<()>,
    /// Nobody else has it as long.
    _folder: SlotFolder,
}

/// What it is made of.
struct Start {
    listen: SocketAddr,
    version: String,
    folder: Option<PathBuf>,
    welcome: Welcome,
    credentials: Arc<Credentials>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

impl Serving {
    async fn start(start: Start) -> Result<Self, WorkerError> {
        let Start { listen: wanted, version, folder: own_folder, welcome, credentials, clock, random } = start;
        let place = &welcome.place;
        let all = own_folder.as_ref().unwrap_or(&place.folder);
        let folder = SlotFolder::claim(all, place.cluster, place.slot).map_err(WorkerError::Folder)?;
        let objects = Objects::open_keeping(&place.storage, place.reserve_bytes, Arc::clone(&clock), random)?;
        let config = means::config(&welcome.means, &folder, place.reserve_bytes);
        let dialer = Dialer::new(Arc::clone(&credentials), Arc::clone(&clock));
        let worker =
            Worker::start(objects, &clock, &config, Channels::new(dialer), &version).map_err(WorkerError::Start)?;
        let failed = |source| WorkerError::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let mut tasks = JoinSet::new();
        let (arriving, arrived) = mpsc::channel::<io::Result<Box<dyn ByteStream>>>(ARRIVED_MAX);
        let (loaded, told) = mpsc::channel(loads::WAITING_MAX);
        tasks.spawn(loads::read_ahead(worker.clone(), (place.cluster, place.slot), told));
        tasks.spawn({
            let config = move || Arc::clone(&credentials.current().server);
            let (asked, of_asked) = (worker.clone(), Arc::clone(&clock));
            listen(listener, config, clock, move |Stranger { stream, place }| {
                let (arriving, loaded) = (arriving.clone(), loaded.clone());
                let (asked, clock) = (asked.clone(), Arc::clone(&of_asked));
                async move {
                    match Errand::of(&stream) {
                        Errand::Tasks => {
                            // Where nobody takes tasks any more the worker ends.
                            let _ = arriving.send(Ok(Box::new(stream))).await;
                            drop(place);
                        }
                        Errand::Blocks => {
                            drop(place);
                            if let Err(error) = handover::give(&asked, stream, &clock).await {
                                tracing::debug!(%error, "not all that is hot could be given");
                            }
                        }
                        // Nobody else says what there is to read.
                        Errand::Loads if Name::Instance.is_of(&stream) => {
                            drop(place);
                            if let Err(error) = loads::hear(&asked, stream, &loaded, &clock).await {
                                tracing::debug!(%error, "not all new shards were heard of");
                            }
                        }
                        Errand::Loads => {}
                    }
                }
            })
        });
        tasks.spawn({
            let worker = worker.clone();
            let incoming = stream::unfold(arrived, async |mut arrived| Some((arrived.recv().await?, arrived)));
            async move {
                if let Err(error) = worker.serve(incoming).await {
                    tracing::error!(%error, "tasks cannot be taken any more");
                }
            }
        });
        let disk = FolderDisk::of(&folder.spill());
        tasks.spawn({
            let reserve = Reserve { disk: Arc::new(FolderDisk::of(&folder.spill())), bytes: place.reserve_bytes };
            let worker = worker.clone();
            async move { worker.keep_spill_room(&reserve, &Health::default()).await }
        });
        tracing::info!(cluster = %place.cluster, slot = place.slot, %address, "ready for tasks");
        Ok(Self { worker, disk, address, tasks, _folder: folder })
    }
}

/// What the instance can tell a worker to be, and ask about it.
struct Office<'a> {
    key: &'a KeyPair,
    authority: CertificateDer<'static>,
    credentials: &'a Arc<Credentials>,
    worker: &'a Worker,
    disk: &'a FolderDisk,
    place: (ClusterId, u32),
    clock: &'a Arc<dyn Clock>,
    /// Where what is not about being there runs.
    tasks: &'a Handle,
}

impl Office<'_> {
    fn certify(&self, certificate: &Base64) {
        match Identity::new(self.key, &CertificateDer::from(certificate.0.clone()), &self.authority) {
            Ok(identity) => self.credentials.renew(identity),
            // The old one is good for some days yet.
            Err(error) => tracing::warn!(%error, "the new certificate cannot be used"),
        }
    }

    fn configure(&self, means: &Means) {
        let _threads_begin_there = self.tasks.enter();
        if let Err(error) = self.worker.configure(&means::share(means, self.disk)) {
            tracing::warn!(%error, "the worker keeps the threads that it has");
        }
    }

    /// Takes over what others have cached; completes when it has it.
    fn take_over(&self, told: TakeOver) -> impl Future<Output = TookOver> + Send + 'static {
        let (worker, credentials) = (self.worker.clone(), Arc::clone(self.credentials));
        handover::take(worker, credentials, self.place, told, Arc::clone(self.clock))
    }

    fn beat(&self) -> Beat {
        let tiers = self.worker.cache_tiers();
        let counts = || {
            let memory = tiers.iter().filter(|tier| tier.tier == "memory");
            memory.flat_map(|tier| &tier.tables).map(|(_, counts)| counts)
        };
        let ahead = self.worker.ahead();
        Beat {
            running: u32::try_from(self.worker.running()).unwrap_or(u32::MAX),
            cache_bytes: counts().map(|counts| counts.bytes).sum(),
            cache_hits: counts().map(|counts| counts.hits).sum(),
            cache_misses: counts().map(|counts| counts.misses).sum(),
            ahead_shards: ahead.shards,
            ahead_blocks: ahead.blocks,
            ahead_dropped: ahead.dropped,
            memory_bytes: self.worker.memory_used() as u64,
        }
    }
}

/// Who a worker is, for its log.
impl WorkerSettings {
    /// The id that its ticket gives it, or that it has drawn.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.way_in.worker()
    }
}
