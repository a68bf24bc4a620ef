//! Settings of a server: the command line takes precedence over `KILN_*` variables, those over a TOML file, and that
//! over defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use fleet::Launcher;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// Options of `kiln serve`. All are optional. The TOML file has the same names, with `_` for `-`.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeArguments {
    /// TOML file with any of these options [default: kiln.toml in the data folder, if it exists]
    #[arg(long, env = "KILN_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Data folder, with the catalog, caches and temporary files [default: kiln-data]
    #[arg(long, env = "KILN_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Address for PostgreSQL clients [default: 127.0.0.1:5433]
    #[arg(long, env = "KILN_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// Address for /healthz, /readyz and /metrics [default: 127.0.0.1:8433]
    #[arg(long, env = "KILN_HTTP", value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,

    /// Storage of shards: file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix; credentials
    /// come from the cloud's usual variables [default: the folder `storage` in the data folder]
    #[arg(long, env = "KILN_STORAGE", value_name = "URL")]
    pub storage: Option<String>,

    /// Begin a new timeline if the data folder and the storage do not belong together: the warehouse continues with the
    /// state of the data folder, and newer data in the storage is abandoned for good. Without this option such a start
    /// is refused
    #[arg(long, env = "KILN_NEW_TIMELINE", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub new_timeline: Option<bool>,

    /// PEM file with the server's certificate chain; clients may then use TLS. If the file is replaced, new connections
    /// use the new certificate
    #[arg(long, env = "KILN_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the certificate's private key
    #[arg(long, env = "KILN_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// File with the password of the superuser `kiln`, or with its SCRAM-SHA-256 verifier; set at the start and
    /// whenever the file changes, and ALTER ROLE cannot change it [default: ALTER ROLE sets the password; at first
    /// there is none]
    #[arg(long, env = "KILN_SUPERUSER_PASSWORD_FILE", value_name = "FILE")]
    pub superuser_password_file: Option<PathBuf>,

    /// Maximum number of connections; more are refused with SQLSTATE 53300 [default: 500]
    #[arg(long, env = "KILN_MAX_CONNECTIONS", value_name = "COUNT")]
    pub max_connections: Option<usize>,

    /// Number of threads that run queries, and of parallel parts of each query [default: one per core]
    #[arg(long, env = "KILN_THREADS", value_name = "COUNT")]
    pub threads: Option<usize>,

    /// Megabytes of memory that all queries share [default: 60 % of the machine's memory]
    #[arg(long, env = "KILN_MEMORY_MB", value_name = "MB")]
    pub memory_mb: Option<u64>,

    /// Megabytes of memory for the cache of columns that scans have read; 0 disables it [default: a quarter of
    /// --memory-mb]
    #[arg(long, env = "KILN_CACHE_MEMORY_MB", value_name = "MB")]
    pub cache_memory_mb: Option<u64>,

    /// Megabytes of --cache-memory-mb for the fragment cache: groups that a query has computed from a shard, which
    /// equal queries reuse; 0 disables it [default: a sixteenth of --cache-memory-mb]
    #[arg(long, env = "KILN_FRAGMENT_CACHE_MB", value_name = "MB")]
    pub fragment_cache_mb: Option<u64>,

    /// Megabytes of the data folder's disk for cached columns that do not fit in memory; they survive a restart; 0
    /// disables the disk cache [default: a quarter of the free disk space, at most 65536]
    #[arg(long, env = "KILN_CACHE_DISK_MB", value_name = "MB")]
    pub cache_disk_mb: Option<u64>,

    /// Seconds that running statements get to finish after SIGTERM before they are cancelled with SQLSTATE 57P01
    /// [default: 10]
    #[arg(long, env = "KILN_SHUTDOWN_GRACE", value_name = "SECONDS")]
    pub shutdown_grace: Option<u64>,

    /// Statements that run at a time on a cluster with the WLM profile `default`; more are queued [default: 100]
    #[arg(long, env = "KILN_CLUSTER_STATEMENTS", value_name = "COUNT")]
    pub cluster_statements: Option<u32>,

    /// Seconds that statements get to finish on a draining worker before they are cancelled with SQLSTATE 57P01
    /// [default: 300]
    #[arg(long, env = "KILN_DRAIN_GRACE", value_name = "SECONDS")]
    pub drain_grace: Option<u64>,

    /// Maximum seconds of backoff before a cluster replaces a worker that has failed repeatedly [default: 60]
    #[arg(long, env = "KILN_WORKER_BACKOFF", value_name = "SECONDS")]
    pub worker_backoff: Option<u64>,

    /// Seconds for which worker processes try to reach a lost server before they end; a server that restarts within
    /// that time gets them back [default: 60]
    #[arg(long, env = "KILN_WORKER_PATIENCE", value_name = "SECONDS")]
    pub worker_patience: Option<u64>,

    /// Address of this machine on which worker processes join, optionally with a port; a worker accepts its parts of
    /// queries on the local address of that connection [default: 127.0.0.1]
    #[arg(long, env = "KILN_WORKER_DOOR", value_name = "ADDRESS[:PORT]")]
    pub worker_door: Option<String>,

    /// Command prefix that starts worker processes: it is put before `kiln worker …` and must replace itself by that
    /// (exec); {slot} and {cluster} stand for numbers, as in `ip netns exec worker-{slot}` [default: none]
    #[arg(long, env = "KILN_WORKER_LAUNCHER", value_name = "COMMAND")]
    pub worker_launcher: Option<String>,

    /// Name of this warehouse's Instance in Kubernetes; its workers are then pods, which the operator creates [default:
    /// workers are processes of this machine]
    #[arg(long, env = "KILN_KUBERNETES", value_name = "NAME")]
    pub kubernetes: Option<String>,

    /// Number of finished statements in memory for sys.log_query; 0 disables that log [default: 10000]
    #[arg(long, env = "KILN_QUERY_LOG_ROWS", value_name = "COUNT")]
    pub query_log_rows: Option<usize>,

    /// Seconds for which history is retained for time travel by AS OF, UNDROP and `kiln restore` [default: 86400]
    #[arg(long, env = "KILN_RETENTION", value_name = "SECONDS")]
    pub retention: Option<u64>,

    /// Seconds after its commit for which a token of `kiln.statement_token` is stored [default: 86400]
    #[arg(long, env = "KILN_TOKEN_RETENTION", value_name = "SECONDS")]
    pub token_retention: Option<u64>,

    /// Maximum number of stored tokens; beyond it, new ones are refused with SQLSTATE 53400 [default: 1000000]
    #[arg(long, env = "KILN_TOKENS_MAX", value_name = "COUNT")]
    pub tokens_max: Option<u64>,

    /// Seconds between checkpoints of the catalog in the storage [default: 3600]
    #[arg(long, env = "KILN_CHECKPOINT_INTERVAL", value_name = "SECONDS")]
    pub checkpoint_interval: Option<u64>,

    /// Kilobytes of write-ahead log that trigger its transfer to the catalog's file; at most a quarter of
    /// --disk-reserve-mb [default: 65536]
    #[arg(long, env = "KILN_MAX_WAL_KB", value_name = "KB")]
    pub max_wal_kb: Option<u64>,

    /// Unflushed rows of a table that trigger a flush to Parquet [default: 100000]
    #[arg(long, env = "KILN_SETTLE_ROWS", value_name = "COUNT")]
    pub settle_rows: Option<usize>,

    /// Megabytes of memory for unflushed rows; writers are slowed down from half of it on, and wait for flushes beyond
    /// it [default: a quarter of --memory-mb]
    #[arg(long, env = "KILN_FRESH_MEMORY_MB", value_name = "MB")]
    pub fresh_memory_mb: Option<u64>,

    /// Megabytes of disk space to keep free on the disk of the data folder and of a storage in a folder; operations
    /// that would use it fail with SQLSTATE 53100; 0 disables the reserve [default: 256]
    #[arg(long, env = "KILN_DISK_RESERVE_MB", value_name = "MB")]
    pub disk_reserve_mb: Option<u64>,

    /// Filter of log lines, as tracing directives: `info`, `fleet=debug,info`, or `info,step=debug` for the steps of
    /// each statement [default: info]
    #[arg(long, env = "KILN_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Format of log lines, text or json [default: text]
    #[arg(long, env = "KILN_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log_format: Option<String>,
}

/// Maximum number of threads, the same as that of `kiln.target_partitions`.
const THREADS_MAX: usize = 1024;

/// Effective settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub data_folder: PathBuf,
    pub pg_listen_address: SocketAddr,
    pub http_listen_address: SocketAddr,
    pub storage_url: String,
    pub new_timeline: bool,
    pub tls_files: Option<(PathBuf, PathBuf)>,
    /// File with the superuser's password, or `None` if ALTER ROLE sets it.
    pub superuser_password_file: Option<PathBuf>,
    pub connections_max: usize,
    /// Number of query threads, or `None` for one per core.
    pub threads: Option<usize>,
    pub memory_bytes: u64,
    /// Memory for cached columns, without the fragment cache.
    pub cache_memory_bytes: u64,
    pub fragment_cache_bytes: u64,
    /// Bytes of the disk cache, or `None` for a share of the free disk space.
    pub cache_disk_bytes: Option<u64>,
    /// Memory for pages of the catalog's trees, which also hold unflushed rows.
    pub catalog_memory_bytes: usize,
    pub shutdown_grace_seconds: u64,
    pub cluster_statements_max: u32,
    pub drain_grace_seconds: u64,
    pub worker_backoff_max_seconds: u64,
    pub worker_reconnect_seconds: u64,
    /// Address on which workers join, or `None` for the default.
    pub worker_listen_address: Option<SocketAddr>,
    pub worker_launcher: Option<Launcher>,
    pub kubernetes_instance: Option<String>,
    pub query_log_rows: usize,
    pub history_retention_seconds: u64,
    pub statement_token_retention_seconds: u64,
    pub statement_tokens_max: u64,
    pub checkpoint_interval_seconds: u64,
    pub max_wal_bytes: u64,
    pub flush_rows: Option<usize>,
    pub unflushed_memory_bytes: u64,
    pub disk_reserve_bytes: u64,
    pub log_filter: String,
    pub log_json: bool,
}

impl Config {
    /// Reads the TOML file, if any, overrides it by the arguments, and fills in the defaults.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the file or an option has an invalid value.
    pub fn load(arguments: ServeArguments) -> anyhow::Result<Self> {
        let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from("kiln-data"));
        let file = match &arguments.config {
            Some(path) => read_file(path)?,
            None => {
                let path = data.join("kiln.toml");
                if path.exists() { read_file(&path)? } else { ServeArguments::default() }
            }
        };
        arguments.with_fallback(file).into_config()
    }
}

impl ServeArguments {
    /// Returns these options, with those of `fallback` for the ones that are not set.
    fn with_fallback(self, fallback: Self) -> Self {
        Self {
            config: self.config,
            data: self.data.or(fallback.data),
            listen: self.listen.or(fallback.listen),
            http: self.http.or(fallback.http),
            storage: self.storage.or(fallback.storage),
            new_timeline: self.new_timeline.or(fallback.new_timeline),
            tls_cert: self.tls_cert.or(fallback.tls_cert),
            tls_key: self.tls_key.or(fallback.tls_key),
            superuser_password_file: self.superuser_password_file.or(fallback.superuser_password_file),
            max_connections: self.max_connections.or(fallback.max_connections),
            threads: self.threads.or(fallback.threads),
            memory_mb: self.memory_mb.or(fallback.memory_mb),
            cache_memory_mb: self.cache_memory_mb.or(fallback.cache_memory_mb),
            fragment_cache_mb: self.fragment_cache_mb.or(fallback.fragment_cache_mb),
            cache_disk_mb: self.cache_disk_mb.or(fallback.cache_disk_mb),
            shutdown_grace: self.shutdown_grace.or(fallback.shutdown_grace),
            cluster_statements: self.cluster_statements.or(fallback.cluster_statements),
            drain_grace: self.drain_grace.or(fallback.drain_grace),
            worker_backoff: self.worker_backoff.or(fallback.worker_backoff),
            worker_patience: self.worker_patience.or(fallback.worker_patience),
            worker_door: self.worker_door.or(fallback.worker_door),
            worker_launcher: self.worker_launcher.or(fallback.worker_launcher),
            kubernetes: self.kubernetes.or(fallback.kubernetes),
            query_log_rows: self.query_log_rows.or(fallback.query_log_rows),
            retention: self.retention.or(fallback.retention),
            token_retention: self.token_retention.or(fallback.token_retention),
            tokens_max: self.tokens_max.or(fallback.tokens_max),
            checkpoint_interval: self.checkpoint_interval.or(fallback.checkpoint_interval),
            max_wal_kb: self.max_wal_kb.or(fallback.max_wal_kb),
            settle_rows: self.settle_rows.or(fallback.settle_rows),
            fresh_memory_mb: self.fresh_memory_mb.or(fallback.fresh_memory_mb),
            disk_reserve_mb: self.disk_reserve_mb.or(fallback.disk_reserve_mb),
            log: self.log.or(fallback.log),
            log_format: self.log_format.or(fallback.log_format),
        }
    }

    fn into_config(self) -> anyhow::Result<Config> {
        let data = self.data.unwrap_or_else(|| PathBuf::from("kiln-data"));
        let data =
            std::path::absolute(&data).with_context(|| format!("cannot resolve the data folder {}", data.display()))?;
        let storage = self.storage.unwrap_or_else(|| format!("file://{}", data.join("storage").display()));
        let tls = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => anyhow::bail!("TLS needs both --tls-cert and --tls-key"),
        };
        let memory_bytes = self.memory_mb.map_or_else(default_memory_bytes, |megabytes| megabytes << 20);
        let cache_bytes = self.cache_memory_mb.map_or(memory_bytes / 4, |megabytes| megabytes << 20);
        let fragment_bytes = self.fragment_cache_mb.map_or(cache_bytes / 16, |megabytes| megabytes << 20);
        let fragment_bytes = fragment_bytes.min(cache_bytes);
        let reserve_bytes = self.disk_reserve_mb.unwrap_or(256) << 20;
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Config {
            data_folder: data,
            pg_listen_address: self.listen.unwrap_or_else(|| local(5433)),
            http_listen_address: self.http.unwrap_or_else(|| local(8433)),
            storage_url: storage,
            new_timeline: self.new_timeline.unwrap_or(false),
            tls_files: tls,
            superuser_password_file: self.superuser_password_file,
            connections_max: self.max_connections.unwrap_or(500),
            threads: self.threads.map(|count| count.clamp(1, THREADS_MAX)),
            memory_bytes,
            cache_memory_bytes: cache_bytes - fragment_bytes,
            fragment_cache_bytes: fragment_bytes,
            cache_disk_bytes: self.cache_disk_mb.map(|megabytes| megabytes << 20),
            catalog_memory_bytes: usize::try_from(memory_bytes / 16).unwrap_or(usize::MAX).max(kv::redb::CACHE_BYTES),
            shutdown_grace_seconds: self.shutdown_grace.unwrap_or(10),
            cluster_statements_max: self.cluster_statements.unwrap_or(100).max(1),
            drain_grace_seconds: self.drain_grace.unwrap_or(300),
            worker_backoff_max_seconds: self.worker_backoff.unwrap_or(60),
            worker_reconnect_seconds: self.worker_patience.unwrap_or(60),
            worker_listen_address: self.worker_door.as_deref().map(parse_worker_address).transpose()?,
            worker_launcher: self.worker_launcher.as_deref().map(parse_launcher).transpose()?,
            kubernetes_instance: self.kubernetes,
            query_log_rows: self.query_log_rows.unwrap_or(10_000),
            history_retention_seconds: self.retention.unwrap_or(86_400),
            statement_token_retention_seconds: self.token_retention.unwrap_or(86_400),
            statement_tokens_max: self.tokens_max.unwrap_or(1_000_000),
            checkpoint_interval_seconds: self.checkpoint_interval.unwrap_or(3_600).max(1),
            max_wal_bytes: max_wal_bytes(self.max_wal_kb, reserve_bytes),
            flush_rows: self.settle_rows,
            unflushed_memory_bytes: self.fresh_memory_mb.map_or(memory_bytes / 4, |megabytes| megabytes << 20),
            disk_reserve_bytes: reserve_bytes,
            log_filter: self.log.unwrap_or_else(|| "info".to_owned()),
            log_json: self.log_format.as_deref() == Some("json"),
        })
    }
}

/// Parses an address with or without a port; without one, the port is 0.
fn parse_worker_address(text: &str) -> anyhow::Result<SocketAddr> {
    let with_any_port = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    let parsed = text.parse().or_else(|_| with_any_port());
    parsed.with_context(|| format!("--worker-door {text} is not an address"))
}

fn parse_launcher(text: &str) -> anyhow::Result<Launcher> {
    Launcher::parse(text).with_context(|| format!("--worker-launcher \"{text}\" cannot be used"))
}

fn read_file(path: &Path) -> anyhow::Result<ServeArguments> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
}

/// Returns the maximum size of the write-ahead log. It is limited to a quarter of the disk reserve, so that both the
/// log and the trees to which it is transferred have room there.
fn max_wal_bytes(kilobytes: Option<u64>, reserve_bytes: u64) -> u64 {
    let wanted = kilobytes.map_or(2 * kv::wal::FILE_BYTES, |kilobytes| kilobytes.saturating_mul(1024));
    if reserve_bytes == 0 { wanted } else { wanted.min(reserve_bytes / 4) }
}

/// Returns 60 % of the machine's memory. The remainder is for the page cache, buffers in flight and memory that is not
/// accounted for.
fn default_memory_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kb = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    total_kb.map_or(4 << 30, |kilobytes| kilobytes * 1024 / 10 * 6)
}
