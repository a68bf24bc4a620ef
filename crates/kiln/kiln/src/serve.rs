//! `kiln serve`: starts a warehouse from its parts, from the data folder up to the listeners, and shuts it down.
//!
//! - `serve/instance_id.rs`: the id of the instance.
//! - `serve/storage_check.rs`: the check that data folder and storage belong together.
//! - `serve/background_services.rs`: the background services.

mod background_services;
pub(crate) mod instance_id;
mod storage_check;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use authentication::{Credentials, TlsFiles};
use cluster_service::{ClusterSettings, Clusters};
use execution::Execution;
use fleet::{Fleet, FleetSettings};
use history::{HistorySettings, RESTORING};
use http_server::Probes;
use kubernetes::KubernetesConnection;
use maintenance::{FlushSettings, FreshLimits};
use objects::{FolderDisk, Objects, StorageClaim};
use pg::PgSettings;
use planner::Planner;
use server_config::{Config, ServeArguments};
use session::backends::Backends;
use session::instance::Instance;
use session::query_log::QueryLog;
use shards::DiskTierSettings;
use supervisor::Supervisor;
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use txn::{OutcomeSettings, Transactions};
use types::{Clock, Disk, DiskReserve, Failpoint, Random, SystemClock, SystemRandom, failpoint};

use crate::{kubernetes_clusters, log_setup};

/// Name of the catalog's file in the data folder.
pub(crate) const CATALOG_FILE: &str = "catalog.redb";
/// Name of the folder in the data folder that queries spill to.
const SPILL_FOLDER: &str = "spill";
/// Name of the folder in the data folder for cached columns that do not fit in memory.
const CACHE_FOLDER: &str = "cache";
/// Default upper bound of the disk cache, in bytes.
const CACHE_DISK_BYTES_MAX: u64 = 64 << 30;
/// Default share of the free disk space for the disk cache: one part of this many.
const CACHE_DISK_DIVISOR: u64 = 4;
/// Name of the folder in the data folder for worker processes, with their caches and spill files.
const WORKERS_FOLDER: &str = "workers";
/// Name of the folder in the data folder where checkpoints are made.
const HISTORY_FOLDER: &str = "history";
/// Interval at which new commits are copied to the storage.
const LOG_UPLOAD_INTERVAL: Duration = Duration::from_millis(400);
/// Bytes of commits that may wait to be copied; if there are more, further commits wait.
const UNARCHIVED_LOG_BYTES_MAX: u64 = 4 << 30;
/// Limit of a table's unflushed rows, as a multiple of the number that triggers a flush.
const UNFLUSHED_ROWS_FACTOR: u64 = 20;
/// Connections that may wait to be accepted.
const LISTEN_BACKLOG: u32 = 1024;
/// Time limit for copying the last commits to the storage at shutdown; the next start copies the remaining ones.
const SHUTDOWN_UPLOAD_TIME_MAX: Duration = Duration::from_secs(30);

/// Serves until SIGTERM or SIGINT, or until the catalog can no longer be written; a second signal ends it at once.
pub(crate) async fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    let config = Config::load(arguments)?;
    log_setup::init(&config.log_filter, config.log_json)?;
    failpoint::set_from_environment()?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;

    let mut server = start(config).await?;
    let code = tokio::select! {
        _ = terminate.recv() => { tracing::info!("received SIGTERM: the server shuts down"); ExitCode::SUCCESS }
        _ = interrupt.recv() => { tracing::info!("received SIGINT: the server shuts down"); ExitCode::SUCCESS }
        () = server.wait_until_failed() => ExitCode::FAILURE,
    };
    tokio::select! {
        () = server.stop() => tracing::info!("the server has stopped"),
        _ = terminate.recv() => tracing::warn!("received a second signal: the server exits without a clean shutdown"),
        _ = interrupt.recv() => tracing::warn!("received a second signal: the server exits without a clean shutdown"),
    }
    Ok(code)
}

/// Running warehouse.
pub(crate) struct Server {
    pg_address: SocketAddr,
    probes: Arc<Probes>,
    /// Worker processes, or `None` if all workers are threads of this process.
    fleet: Option<Fleet>,
    transactions: Arc<Transactions>,
    shutdown: CancellationToken,
    /// Tasks of the listeners.
    listeners: JoinSet<io::Result<()>>,
    services: Arc<Supervisor>,
    clock: Arc<dyn Clock>,
}

/// Starts a warehouse: opens all parts from the bottom up and the listeners last, so that whoever can connect can
/// query.
pub(crate) async fn start(config: Config) -> anyhow::Result<Server> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    // For its owner alone: the catalog holds the password verifiers.
    let mut folder = std::fs::DirBuilder::new();
    folder
        .recursive(true)
        .mode(0o700)
        .create(&config.data_folder)
        .with_context(|| format!("cannot make {}", config.data_folder.display()))?;

    if config.data_folder.join(RESTORING).exists() {
        anyhow::bail!("a restore into {} was cut off: run it again", config.data_folder.display());
    }
    // Bound before anything is changed: a start that cannot have its addresses must not claim the storage.
    let pg_socket = bind_socket(config.pg_listen_address)?;
    let http_socket = bind_socket(config.http_listen_address)?;
    // The lock on the catalog's file keeps a second process out of this folder, so it is taken first.
    let catalog = config.data_folder.join(CATALOG_FILE);
    let kv = kv::wal::open(&catalog, config.max_wal_bytes / 2, config.catalog_memory_bytes)
        .with_context(|| format!("cannot open the catalog {}", catalog.display()))?;
    let instance = instance_id::load_or_create(&config.data_folder, &*random)?;

    let reserve_bytes = config.disk_reserve_bytes;
    let objects =
        Objects::open_with_reserve(&config.storage_url, reserve_bytes, Arc::clone(&clock), Arc::clone(&random))
            .with_context(|| format!("cannot open the storage {}", config.storage_url))?;
    let kv: Arc<dyn kv::TxKv> = Arc::new(kv);
    // Checked before the claim, which would end another server that holds the storage rightfully.
    storage_check::check_storage(&kv, &objects, instance, &config).await?;
    // Opened without the disk reserve: a start on a full disk may use the reserve.
    let claimed = Objects::open(&config.storage_url, Arc::clone(&clock), Arc::clone(&random))
        .with_context(|| format!("cannot open the storage {}", config.storage_url))?;
    let claim = StorageClaim::acquire(&claimed, instance, &claim_description(&config))
        .await
        .context("cannot claim the storage")?;
    Failpoint::Claimed.pass();
    // Checked again after the claim: from now on nobody else writes, and earlier writes of others are visible.
    storage_check::check_storage(&kv, &claimed, instance, &config).await?;
    history::begin_timeline(&kv, &claimed).await.context("cannot begin a timeline in the storage")?;
    let lacks_checkpoint =
        history::lacks_first_checkpoint(&*kv, &claimed).await.context("cannot look for checkpoints in the storage")?;
    let log = kv::logical_log::RecordingStore::open(kv, Arc::clone(&clock), UNARCHIVED_LOG_BYTES_MAX)
        .with_context(|| format!("cannot read the catalog {}", catalog.display()))?;
    let reserve = (0 < reserve_bytes).then(|| DiskReserve {
        disk: Arc::new(FolderDisk::new(&config.data_folder)) as Arc<dyn Disk>,
        bytes: reserve_bytes,
    });
    let history = HistorySettings {
        instance,
        work_folder: config.data_folder.join(HISTORY_FOLDER),
        store_file: catalog.clone(),
        reserve: reserve.clone(),
        upload_interval: LOG_UPLOAD_INTERVAL,
        checkpoint_interval: Duration::from_secs(config.checkpoint_interval_seconds),
        retention: Duration::from_secs(config.history_retention_seconds),
        claim: Some(Arc::new(claim)),
    };
    let transactions = Transactions::open_with_history(Arc::new(log), objects.clone(), Arc::clone(&clock), history)
        .context("cannot read the catalog")?;
    if lacks_checkpoint {
        // Without a checkpoint, acknowledged commits of the new timeline could not be restored.
        transactions.write_checkpoint().await.context("cannot write the new timeline's first checkpoint")?;
    }
    let kept_for = Duration::from_secs(config.statement_token_retention_seconds);
    transactions
        .set_outcome_settings(OutcomeSettings { retention: kept_for, max_outcomes: config.statement_tokens_max });
    let defaults = scheduler::ResourceConfig::default();
    let threads = config.threads.unwrap_or(defaults.threads);
    let execution = Execution::new(
        objects,
        Arc::clone(&transactions),
        Arc::clone(&clock),
        Arc::clone(&random),
        scheduler::ResourceConfig {
            memory_bytes: usize::try_from(config.memory_bytes).unwrap_or(usize::MAX),
            cache_bytes: config.cache_memory_bytes,
            fragment_cache_bytes: config.fragment_cache_bytes,
            cache_disk: Some(cache_disk(&config)),
            spill_folder: config.data_folder.join(SPILL_FOLDER),
            threads,
            ..defaults
        },
    )?;
    if let Some(reserve) = &reserve {
        transactions.set_disk_reserve(reserve.clone());
    }
    let planner = Arc::new(Planner::new(
        execution.scan_planner(),
        operators::operator_planning(),
        execution.executor().runtime(),
        execution.executor().default_partitions(),
    ));
    let warehouse = match &config.kubernetes_instance {
        Some(name) => Some(kubernetes_clusters::connect(name, &clock).await?),
        None => None,
    };
    let fleet = match fleet_settings(&config, warehouse.as_ref())? {
        Some(settings) => {
            let opened = Fleet::open(settings, Arc::clone(&clock), Arc::clone(&random));
            Some(opened.await.context("cannot set up worker processes")?)
        }
        None => None,
    };
    let processes = fleet.as_ref().map(|fleet| Arc::clone(fleet.processes()));
    let clusters = match (&warehouse, processes) {
        (Some(warehouse), Some(processes)) => kubernetes_clusters::open_clusters(
            warehouse,
            execution.executor(),
            &config.data_folder,
            cluster_settings(&config),
            processes,
            &clock,
            &random,
        ),
        (_, processes) => {
            let (executor, clock, random) = (execution.executor(), Arc::clone(&clock), Arc::clone(&random));
            Clusters::open(executor, &config.data_folder, cluster_settings(&config), processes, clock, random)
        }
    };
    let clusters = clusters.context("cannot read the definitions of the clusters")?;
    let services = Arc::new(Supervisor::new(Arc::clone(&clock)));
    if let Some((warehouse, fleet)) = warehouse.zip(fleet.as_ref()) {
        background_services::start_authority_publisher(
            &services,
            warehouse,
            fleet.authority_pem().to_owned(),
            Arc::clone(&clock),
        );
    }
    let credentials = Credentials::load(
        config.tls_files.clone().map(|(certificate, key)| TlsFiles { certificate, key }).as_ref(),
        config.superuser_password_file.as_deref(),
        Arc::clone(&transactions),
        Arc::clone(&clock),
        Arc::clone(&random),
    );
    let shutdown_grace = Duration::from_secs(config.shutdown_grace_seconds);
    let pg_settings = PgSettings { shutdown_grace, ..PgSettings::default() };
    let backends = Backends::new(config.connections_max, Backends::RESERVED_DEFAULT, clock.now_us());
    let instance = Arc::new(Instance {
        planner,
        execution: Arc::clone(&execution),
        transactions: Arc::clone(&transactions),
        clusters,
        credentials: Arc::new(credentials.context("cannot use the TLS certificate")?),
        query_log: QueryLog::new(config.query_log_rows),
        backends: Arc::new(backends),
        metrics: Arc::default(),
        services: Arc::clone(&services),
        clock: Arc::clone(&clock),
        random,
    });
    instance.drop_leftover_temporary().await.context("cannot drop the temporary objects of ended sessions")?;
    instance.credentials.set_superuser_password().await.context("cannot set the superuser's password")?;

    let (settle, limits) = flush_settings(&config);
    execution.throttle().set_limits(limits);
    background_services::start(&instance, settle, reserve);
    let shutdown = CancellationToken::new();
    let probes = Probes::new(Arc::clone(&instance));
    let pg = listen(pg_socket, config.pg_listen_address)?;
    let http = listen(http_socket, config.http_listen_address)?;
    let (pg_address, http_address) = (pg.local_addr()?, http.local_addr()?);
    let mut doors = JoinSet::new();
    doors.spawn({
        let (probes, shutdown) = (Arc::clone(&probes), shutdown.clone());
        async move { probes.serve(http, shutdown).await }
    });
    doors.spawn({
        let shutdown = shutdown.clone();
        async move { pg::serve(instance, pg_settings, pg, shutdown).await }
    });
    tracing::info!(address = %http_address, "ready for HTTP");
    tracing::info!(address = %pg_address, storage = config.storage_url, "ready for PostgreSQL clients");
    Ok(Server { pg_address, probes, fleet, transactions, shutdown, listeners: doors, services, clock })
}

impl Server {
    /// Returns the address for PostgreSQL clients.
    pub(crate) fn pg_address(&self) -> SocketAddr {
        self.pg_address
    }

    /// Waits until the server cannot continue: the catalog cannot be written, or a listener has ended.
    async fn wait_until_failed(&mut self) {
        tokio::select! {
            () = self.transactions.wait_until_poisoned() => tracing::error!("the catalog can no longer be written: the server stops"),
            ended = self.listeners.join_next() => match ended {
                Some(Ok(Err(error))) => tracing::error!(%error, "a network listener failed: the server stops"),
                _ => tracing::error!("a network listener ended unexpectedly: the server stops"),
            },
        }
    }

    /// Shuts down: closes the listeners, lets running statements finish within the grace period or cancels them, stops
    /// the background services and workers, and copies the last commits to the storage.
    pub(crate) async fn stop(mut self) {
        // If the caller drops this future early, dropping `workers` kills the worker processes.
        let workers = self.fleet.take().map(WorkerProcesses);
        self.probes.announce_shutdown();
        self.shutdown.cancel();
        while self.listeners.join_next().await.is_some() {}
        self.services.stop(|name| !background_services::archives_history(name)).await;
        if let Some(WorkerProcesses(fleet)) = &workers {
            fleet.close().await;
        }
        self.services.stop(background_services::archives_history).await;
        tokio::select! {
            ended = self.transactions.archive_remaining_log() => if let Err(error) = ended {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "could not copy the last commits to the object storage at shutdown; the next start copies them");
            },
            () = self.clock.sleep(SHUTDOWN_UPLOAD_TIME_MAX) => {
                tracing::warn!("timed out copying the last commits to the object storage at shutdown; the next start copies them");
            }
        }
    }
}

/// Worker processes, killed on drop.
struct WorkerProcesses(Fleet);

impl Drop for WorkerProcesses {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Returns the settings for worker processes, or `None` if there can be none because other processes cannot read the
/// storage or the system cannot report when a process ends.
fn fleet_settings(config: &Config, warehouse: Option<&KubernetesConnection>) -> anyhow::Result<Option<FleetSettings>> {
    if config.storage_url.starts_with("memory:") || !fleet::can_watch_processes() {
        if config.worker_listen_address.is_some() || config.worker_launcher.is_some() || warehouse.is_some() {
            anyhow::bail!(
                "--worker-door, --worker-launcher and --kubernetes need worker processes, which this storage or system \
                 does not support"
            );
        }
        tracing::info!(
            "workers run as threads of the server: with this storage or operating system, worker processes are not possible"
        );
        return Ok(None);
    }
    let cache_disk = cache_disk(config);
    let log_format = if config.log_json { "json" } else { "text" };
    Ok(Some(FleetSettings {
        data_folder: config.data_folder.clone(),
        workers_folder: config.data_folder.join(WORKERS_FOLDER),
        join_address: config.worker_listen_address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()),
        program: std::env::current_exe().context("cannot find the path of this program")?,
        launcher: config.worker_launcher.clone().unwrap_or_default(),
        environment: vec![
            ("KILN_LOG".to_owned(), config.log_filter.clone()),
            ("KILN_LOG_FORMAT".to_owned(), log_format.to_owned()),
        ],
        storage: config.storage_url.clone(),
        memory_bytes: config.memory_bytes,
        cache_bytes: config.cache_memory_bytes,
        cache_disk_bytes: cache_disk.bytes_max,
        cache_disk_divisor: cache_disk.space_divisor,
        reserve_bytes: config.disk_reserve_bytes,
        reconnect_timeout: Duration::from_secs(config.worker_reconnect_seconds),
        token_verifier: warehouse.map(KubernetesConnection::token_authenticator),
    }))
}

/// Returns the settings of the column cache on the data folder's disk.
fn cache_disk(config: &Config) -> DiskTierSettings {
    let (bytes_max, part) = match config.cache_disk_bytes {
        Some(bytes) => (bytes, 1),
        None => (CACHE_DISK_BYTES_MAX, CACHE_DISK_DIVISOR),
    };
    let reserve =
        DiskReserve { disk: Arc::new(FolderDisk::new(&config.data_folder)), bytes: config.disk_reserve_bytes };
    DiskTierSettings { folder: config.data_folder.join(CACHE_FOLDER), bytes_max, space_divisor: part, reserve }
}

/// Returns the thresholds for flushing rows and the limits of unflushed rows at which writers wait.
fn flush_settings(config: &Config) -> (FlushSettings, FreshLimits) {
    let defaults = FlushSettings::default();
    let rows = config.flush_rows.unwrap_or(defaults.rows);
    let bytes = defaults.bytes.saturating_mul((rows / defaults.rows).max(1) as u64);
    let settle = FlushSettings { rows, bytes, total_bytes: config.unflushed_memory_bytes / 4, ..defaults };
    let limits =
        FreshLimits { rows: (rows as u64).saturating_mul(UNFLUSHED_ROWS_FACTOR), bytes: config.unflushed_memory_bytes };
    (settle, limits)
}

/// Binds a socket to an address. Connections are refused until it listens.
fn bind_socket(address: SocketAddr) -> anyhow::Result<TcpSocket> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Connections of an earlier server that are closing do not hold the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Ok::<_, io::Error>(socket)
    };
    bind().with_context(|| format!("cannot listen on {address}"))
}

fn listen(socket: TcpSocket, address: SocketAddr) -> anyhow::Result<TcpListener> {
    socket.listen(LISTEN_BACKLOG).with_context(|| format!("cannot listen on {address}"))
}

/// Returns the settings of clusters: concurrent statements, drain grace period and restart backoff.
fn cluster_settings(config: &Config) -> ClusterSettings {
    ClusterSettings {
        max_running: config.cluster_statements_max,
        drain_grace: Duration::from_secs(config.drain_grace_seconds),
        backoff_max: Duration::from_secs(config.worker_backoff_max_seconds),
    }
}

/// Returns the description of this server that is stored in the claim and shown to other servers that want the storage.
fn claim_description(config: &Config) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), config.data_folder.display())
}
