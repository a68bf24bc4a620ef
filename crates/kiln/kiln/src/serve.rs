//! `kiln serve`: starts a warehouse from its parts, from the data folder up to the listeners, and shuts it down.
//!
//! - `serve/instance_id.rs`: the id of the instance.
//! - `serve/storage_check.rs`: the check that data folder and storage belong together.
//! - `serve/services.rs`: the background services.

pub(crate) mod instance_id;
mod services;
mod storage_check;

use std::net::{Ipv4Addr, SocketAddr};
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
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use txn::{OutcomeSettings, Transactions};
use types::{Clock, Disk, DiskReserve, Failpoint, Random, SystemClock, SystemRandom, failpoint};

use crate::{kubernetes_clusters, logging};

/// Name of the catalog's file in the data folder.
pub(crate) const CATALOG: &str = "catalog.redb";
/// Name of the folder in the data folder that queries spill to.
const SPILL: &str = "spill";
/// Name of the folder in the data folder for cached columns that do not fit in memory.
const CACHE: &str = "cache";
/// Default upper bound of the disk cache, in bytes.
const CACHE_DISK_BYTES_MAX: u64 = 64 << 30;
/// Default share of the free disk space for the disk cache: one part of this many.
const CACHE_DISK_PART: u64 = 4;
/// Name of the folder in the data folder for worker processes, with their caches and spill files.
const WORKERS: &str = "workers";
/// Name of the folder in the data folder where checkpoints are made.
const HISTORY: &str = "history";
/// Interval at which new commits are copied to the storage.
const UPLOAD_EVERY: Duration = Duration::from_millis(400);
/// Bytes of commits that may wait to be copied; if there are more, further commits wait.
const LOG_WAITING_MAX: u64 = 4 << 30;
/// Limit of a table's unflushed rows, as a multiple of the number that triggers a flush.
const UNFLUSHED_ROWS_FACTOR: u64 = 20;
/// Time limit for copying the last commits to the storage at shutdown; the next start copies the remaining ones.
const LAST_UPLOAD_TIME_MAX: Duration = Duration::from_secs(30);

/// Serves until SIGTERM or SIGINT, or until the catalog can no longer be written; a second signal ends it at once.
pub(crate) async fn serve(arguments: ServeArguments) -> anyhow::Result<ExitCode> {
    let config = Config::load(arguments)?;
    logging::init(&config.log, config.log_json)?;
    failpoint::set_from_environment()?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;

    let mut server = start(config).await?;
    let code = tokio::select! {
        _ = terminate.recv() => { tracing::info!("SIGTERM: shutting down"); ExitCode::SUCCESS }
        _ = interrupt.recv() => { tracing::info!("SIGINT: shutting down"); ExitCode::SUCCESS }
        () = server.failed() => ExitCode::FAILURE,
    };
    tokio::select! {
        () = server.stop() => tracing::info!("stopped"),
        _ = terminate.recv() => tracing::warn!("second signal: ending without a clean shutdown"),
        _ = interrupt.recv() => tracing::warn!("second signal: ending without a clean shutdown"),
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
    listeners: JoinSet<std::io::Result<()>>,
    services: Arc<Supervisor>,
    clock: Arc<dyn Clock>,
}

/// Starts a warehouse: opens all parts from the bottom up and the listeners last, so that whoever can connect can
/// query.
pub(crate) async fn start(config: Config) -> anyhow::Result<Server> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let random: Arc<dyn Random> = Arc::new(SystemRandom);
    std::fs::create_dir_all(&config.data).with_context(|| format!("cannot make {}", config.data.display()))?;

    if config.data.join(RESTORING).exists() {
        anyhow::bail!("a restore into {} was cut off: run it again", config.data.display());
    }
    // The lock on the catalog's file keeps a second process out of this folder, so it is taken first.
    let catalog = config.data.join(CATALOG);
    let kv = kv::wal::open(&catalog, config.max_wal_bytes / 2, config.catalog_memory_bytes)
        .with_context(|| format!("cannot open the catalog {}", catalog.display()))?;
    let instance = instance_id::load_or_create(&config.data, &*random)?;

    let reserve_bytes = config.disk_reserve_bytes;
    let objects = Objects::open_with_reserve(&config.storage, reserve_bytes, Arc::clone(&clock), Arc::clone(&random))
        .with_context(|| format!("cannot open the storage {}", config.storage))?;
    let kv: Arc<dyn kv::TxKv> = Arc::new(kv);
    // Checked before the claim, which would end another server that holds the storage rightfully.
    storage_check::check_storage(&kv, &objects, instance, &config).await?;
    // Opened without the disk reserve: a start on a full disk may use the reserve.
    let claimed = Objects::open(&config.storage, Arc::clone(&clock), Arc::clone(&random))
        .with_context(|| format!("cannot open the storage {}", config.storage))?;
    let claim = StorageClaim::acquire(&claimed, instance, &claim_description(&config))
        .await
        .context("cannot claim the storage")?;
    Failpoint::Claimed.pass();
    // Checked again after the claim: from now on nobody else writes, and earlier writes of others are visible.
    storage_check::check_storage(&kv, &claimed, instance, &config).await?;
    history::begin_timeline(&kv, &claimed).await.context("cannot begin a timeline in the storage")?;
    let lacks_checkpoint =
        history::lacks_first_checkpoint(&*kv, &claimed).await.context("cannot look for checkpoints in the storage")?;
    let log = kv::record_log::RecordingStore::open(kv, Arc::clone(&clock), LOG_WAITING_MAX)
        .with_context(|| format!("cannot read the catalog {}", catalog.display()))?;
    let reserve = (0 < reserve_bytes)
        .then(|| DiskReserve { disk: Arc::new(FolderDisk::new(&config.data)) as Arc<dyn Disk>, bytes: reserve_bytes });
    let history = HistorySettings {
        instance,
        work_folder: config.data.join(HISTORY),
        store_file: catalog.clone(),
        reserve: reserve.clone(),
        upload_interval: UPLOAD_EVERY,
        checkpoint_interval: Duration::from_secs(config.checkpoint_interval_seconds),
        retention: Duration::from_secs(config.retention_seconds),
        claim: Some(Arc::new(claim)),
    };
    let transactions = Transactions::open_with_history(Arc::new(log), objects.clone(), Arc::clone(&clock), history)
        .context("cannot read the catalog")?;
    if lacks_checkpoint {
        // Without a checkpoint, acknowledged commits of the new timeline could not be restored.
        transactions.write_checkpoint().await.context("cannot write the new timeline's first checkpoint")?;
    }
    let kept_for = Duration::from_secs(config.token_retention_seconds);
    transactions.set_outcome_settings(OutcomeSettings { retention: kept_for, max_outcomes: config.tokens_max });
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
            spill_folder: config.data.join(SPILL),
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
    let warehouse = match &config.kubernetes {
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
            &config.data,
            cluster_settings(&config),
            processes,
            &clock,
            &random,
        ),
        (_, processes) => {
            let (executor, clock, random) = (execution.executor(), Arc::clone(&clock), Arc::clone(&random));
            Clusters::open(executor, &config.data, cluster_settings(&config), processes, clock, random)
        }
    };
    let clusters = clusters.context("cannot read the definitions of the clusters")?;
    let services = Arc::new(Supervisor::new(Arc::clone(&clock)));
    if let Some((warehouse, fleet)) = warehouse.zip(fleet.as_ref()) {
        services::start_authority_publisher(&services, warehouse, fleet.authority_pem().to_owned(), Arc::clone(&clock));
    }
    let credentials = Credentials::load(
        config.tls.clone().map(|(certificate, key)| TlsFiles { certificate, key }).as_ref(),
        config.superuser_password.as_deref(),
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
    services::start(&instance, settle, reserve);
    let shutdown = CancellationToken::new();
    let probes = Probes::new(Arc::clone(&instance));
    let pg = listen(config.listen).await?;
    let http = listen(config.http).await?;
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
    tracing::info!(address = %pg_address, storage = config.storage, "ready for PostgreSQL clients");
    Ok(Server { pg_address, probes, fleet, transactions, shutdown, listeners: doors, services, clock })
}

impl Server {
    /// Returns the address for PostgreSQL clients.
    pub(crate) fn pg_address(&self) -> SocketAddr {
        self.pg_address
    }

    /// Waits until the server cannot continue: the catalog cannot be written, or a listener has ended.
    async fn failed(&mut self) {
        tokio::select! {
            () = self.transactions.wait_until_poisoned() => tracing::error!("the catalog can no longer be written: stopping"),
            ended = self.listeners.join_next() => match ended {
                Some(Ok(Err(error))) => tracing::error!(%error, "a listener failed: stopping"),
                _ => tracing::error!("a listener ended unexpectedly: stopping"),
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
        self.services.stop(|name| !services::archives_history(name)).await;
        if let Some(WorkerProcesses(fleet)) = &workers {
            fleet.close().await;
        }
        self.services.stop(services::archives_history).await;
        tokio::select! {
            ended = self.transactions.archive_remaining_log() => if let Err(error) = ended {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "could not copy all commits to the storage; the next start copies them");
            },
            () = self.clock.sleep(LAST_UPLOAD_TIME_MAX) => {
                tracing::warn!("timed out copying the last commits to the storage; the next start copies them");
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
    if config.storage.starts_with("memory:") || !fleet::can_watch_processes() {
        if config.worker_door.is_some() || config.worker_launcher.is_some() || warehouse.is_some() {
            anyhow::bail!(
                "--worker-door, --worker-launcher and --kubernetes need worker processes, which this storage or system \
                 does not support"
            );
        }
        tracing::info!("workers are threads of this process: other processes cannot read the storage or be watched");
        return Ok(None);
    }
    let cache_disk = cache_disk(config);
    let log_format = if config.log_json { "json" } else { "text" };
    Ok(Some(FleetSettings {
        data_folder: config.data.clone(),
        workers_folder: config.data.join(WORKERS),
        join_address: config.worker_door.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into()),
        program: std::env::current_exe().context("cannot find the path of this program")?,
        launcher: config.worker_launcher.clone().unwrap_or_default(),
        environment: vec![
            ("KILN_LOG".to_owned(), config.log.clone()),
            ("KILN_LOG_FORMAT".to_owned(), log_format.to_owned()),
        ],
        storage: config.storage.clone(),
        memory_bytes: config.memory_bytes,
        cache_bytes: config.cache_memory_bytes,
        cache_disk_bytes: cache_disk.bytes_max,
        cache_disk_divisor: cache_disk.space_divisor,
        reserve_bytes: config.disk_reserve_bytes,
        reconnect_timeout: Duration::from_secs(config.worker_patience_seconds),
        token_verifier: warehouse.map(KubernetesConnection::token_authenticator),
    }))
}

/// Returns the settings of the column cache on the data folder's disk.
fn cache_disk(config: &Config) -> DiskTierSettings {
    let (bytes_max, part) = match config.cache_disk_bytes {
        Some(bytes) => (bytes, 1),
        None => (CACHE_DISK_BYTES_MAX, CACHE_DISK_PART),
    };
    let reserve = DiskReserve { disk: Arc::new(FolderDisk::new(&config.data)), bytes: config.disk_reserve_bytes };
    DiskTierSettings { folder: config.data.join(CACHE), bytes_max, space_divisor: part, reserve }
}

/// Returns the thresholds for flushing rows and the limits of unflushed rows at which writers wait.
fn flush_settings(config: &Config) -> (FlushSettings, FreshLimits) {
    let defaults = FlushSettings::default();
    let rows = config.settle_rows.unwrap_or(defaults.rows);
    let bytes = defaults.bytes.saturating_mul((rows / defaults.rows).max(1) as u64);
    let settle = FlushSettings { rows, bytes, total_bytes: config.fresh_memory_bytes / 4, ..defaults };
    let limits =
        FreshLimits { rows: (rows as u64).saturating_mul(UNFLUSHED_ROWS_FACTOR), bytes: config.fresh_memory_bytes };
    (settle, limits)
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Returns the settings of clusters: concurrent statements, drain grace period and restart backoff.
fn cluster_settings(config: &Config) -> ClusterSettings {
    ClusterSettings {
        max_running: config.cluster_statements,
        drain_grace: Duration::from_secs(config.drain_grace_seconds),
        backoff_max: Duration::from_secs(config.worker_backoff_seconds),
    }
}

/// Returns the description of this server that is stored in the claim and shown to other servers that want the storage.
fn claim_description(config: &Config) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", host.trim(), config.data.display())
}
