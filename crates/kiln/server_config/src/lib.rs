//! A server's settings: command line over `KILN_*` variables over a TOML file over defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use fleet::Launcher;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// The options of `kiln serve`. All are optional; the same names, with `_` for `-`, stand in the TOML file.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServeArguments {
    /// TOML file with any of these options [default: kiln.toml in the data folder, where there is one]
    #[arg(long, env = "KILN_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,

    /// Folder of the catalog and of temporary files [default: kiln-data]
    #[arg(long, env = "KILN_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,

    /// Address for PostgreSQL clients [default: 127.0.0.1:5433]
    #[arg(long, env = "KILN_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,

    /// Address for /healthz, /readyz and /metrics [default: 127.0.0.1:8433]
    #[arg(long, env = "KILN_HTTP", value_name = "ADDRESS:PORT")]
    pub http: Option<SocketAddr>,

    /// Where shards are kept: file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix; credentials come
    /// from the cloud's usual variables [default: the folder `storage` in the data folder]
    #[arg(long, env = "KILN_STORAGE", value_name = "URL")]
    pub storage: Option<String>,

    /// Begin a new timeline where the data folder and the storage do not belong together: the warehouse goes on as the data folder has it, and what the
    /// storage has beyond it is left behind for good. Without this such a start is refused
    #[arg(long, env = "KILN_NEW_TIMELINE", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub new_timeline: Option<bool>,

    /// PEM file with the server's certificate chain; clients may then use TLS. Where it is replaced, new connections are shown the new one
    #[arg(long, env = "KILN_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// PEM file with the certificate's private key
    #[arg(long, env = "KILN_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// File with the password of the superuser `kiln`, or with its SCRAM-SHA-256 verifier: set at the start and whenever the file says another one, and by
    /// nothing else [default: ALTER ROLE says it, and there is none at first]
    #[arg(long, env = "KILN_SUPERUSER_PASSWORD_FILE", value_name = "FILE")]
    pub superuser_password_file: Option<PathBuf>,

    /// Connections served at once; more are refused with 53300 [default: 500]
    #[arg(long, env = "KILN_MAX_CONNECTIONS", value_name = "COUNT")]
    pub max_connections: Option<usize>,

    /// Threads that run queries, each query in as many parts [default: one per core]
    #[arg(long, env = "KILN_THREADS", value_name = "COUNT")]
    pub threads: Option<usize>,

    /// Memory all queries share, in megabytes [default: 60 % of the machine's]
    #[arg(long, env = "KILN_MEMORY_MB", value_name = "MB")]
    pub memory_mb: Option<u64>,

    /// Megabytes of memory for columns that scans have read: hot ones are read from there; 0 keeps none [default: a quarter of --memory-mb]
    #[arg(long, env = "KILN_CACHE_MEMORY_MB", value_name = "MB")]
    pub cache_memory_mb: Option<u64>,

    /// Of these megabytes how many are for groups that queries have made of a shard: who asks the same again need not read it; 0 keeps none
    /// [default: a sixteenth of --cache-memory-mb]
    #[arg(long, env = "KILN_FRAGMENT_CACHE_MB", value_name = "MB")]
    pub fragment_cache_mb: Option<u64>,

    /// Megabytes of the data folder's disk for columns that memory has no room for, and that a restart finds again; 0 keeps none
    /// [default: a quarter of what is free there, 65536 at most]
    #[arg(long, env = "KILN_CACHE_DISK_MB", value_name = "MB")]
    pub cache_disk_mb: Option<u64>,

    /// Seconds that running statements get to finish after SIGTERM before they are cancelled with 57P01 [default: 10]
    #[arg(long, env = "KILN_SHUTDOWN_GRACE", value_name = "SECONDS")]
    pub shutdown_grace: Option<u64>,

    /// Statements that run at a time on a cluster under the WLM profile `default`; more wait their turn [default: 100]
    #[arg(long, env = "KILN_CLUSTER_STATEMENTS", value_name = "COUNT")]
    pub cluster_statements: Option<u32>,

    /// Seconds that statements get to finish on a worker that is to go, before they are cancelled with 57P01 [default: 300]
    #[arg(long, env = "KILN_DRAIN_GRACE", value_name = "SECONDS")]
    pub drain_grace: Option<u64>,

    /// Seconds that a cluster waits at most before it replaces a worker whose predecessors have failed one after the other [default: 60]
    #[arg(long, env = "KILN_WORKER_BACKOFF", value_name = "SECONDS")]
    pub worker_backoff: Option<u64>,

    /// Seconds that workers in processes of their own look for a server that is gone, before they end; one that comes back
    /// within that finds them again [default: 60]
    #[arg(long, env = "KILN_WORKER_PATIENCE", value_name = "SECONDS")]
    pub worker_patience: Option<u64>,

    /// Address of this machine where workers in processes of their own come in, and by which they reach it, with a port if that has to be a
    /// certain one; they take their parts of queries at the address by which they reach it [default: 127.0.0.1]
    #[arg(long, env = "KILN_WORKER_DOOR", value_name = "ADDRESS[:PORT]")]
    pub worker_door: Option<String>,

    /// Command that starts workers in processes of their own and becomes them: words before `kiln worker …`, where {slot} and {cluster} stand for
    /// numbers, as in `ip netns exec worker-{slot}` [default: none]
    #[arg(long, env = "KILN_WORKER_LAUNCHER", value_name = "COMMAND")]
    pub worker_launcher: Option<String>,

    /// Name of this warehouse's Instance in Kubernetes: its clusters are pods, which the operator makes [default: they are processes of this machine]
    #[arg(long, env = "KILN_KUBERNETES", value_name = "NAME")]
    pub kubernetes: Option<String>,

    /// Statements that have ended and are kept in memory for sys.log_query; 0 keeps none [default: 10000]
    #[arg(long, env = "KILN_QUERY_LOG_ROWS", value_name = "COUNT")]
    pub query_log_rows: Option<usize>,

    /// Seconds that the past can be gone back to, by AS OF, UNDROP and `kiln restore` [default: 86400]
    #[arg(long, env = "KILN_RETENTION", value_name = "SECONDS")]
    pub retention: Option<u64>,

    /// Seconds for which a token of `kiln.statement_token` is known after its commit [default: 86400]
    #[arg(long, env = "KILN_TOKEN_RETENTION", value_name = "SECONDS")]
    pub token_retention: Option<u64>,

    /// Tokens that are known at most; where there are so many, new ones are refused with 53400 [default: 1000000]
    #[arg(long, env = "KILN_TOKENS_MAX", value_name = "COUNT")]
    pub tokens_max: Option<u64>,

    /// Seconds between checkpoints of the catalog in the storage [default: 3600]
    #[arg(long, env = "KILN_CHECKPOINT_INTERVAL", value_name = "SECONDS")]
    pub checkpoint_interval: Option<u64>,

    /// Kilobytes of write-ahead log after which the catalog's file takes what it says; a quarter of the disk's reserve at most [default: 65536]
    #[arg(long, env = "KILN_MAX_WAL_KB", value_name = "KB")]
    pub max_wal_kb: Option<u64>,

    /// Fresh rows of a table that settle at once; `kiln bench unsettled` lets none [default: 100000]
    #[arg(long, env = "KILN_SETTLE_ROWS", value_name = "COUNT")]
    pub settle_rows: Option<usize>,

    /// Megabytes of memory for fresh rows: where they take more, writers wait until some have settled; from half of it on they are slowed
    /// [default: a quarter of --memory-mb]
    #[arg(long, env = "KILN_FRESH_MEMORY_MB", value_name = "MB")]
    pub fresh_memory_mb: Option<u64>,

    /// Megabytes of the disk of the data folder, and of a storage in a folder, that are left free: who needs them gets 53100; 0 is none
    /// [default: 256]
    #[arg(long, env = "KILN_DISK_RESERVE_MB", value_name = "MB")]
    pub disk_reserve_mb: Option<u64>,

    /// Tracing filters of the log: `info`, `session=debug,info`, or `info,step=debug` for the steps of each statement [default: info]
    #[arg(long, env = "KILN_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// Log lines as text or json [default: text]
    #[arg(long, env = "KILN_LOG_FORMAT", value_name = "FORMAT", value_parser = ["text", "json"])]
    pub log_format: Option<String>,
}

/// As many as `kiln.target_partitions` can say.
const THREADS_MAX: usize = 1024;

/// The settings in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    pub data: PathBuf,
    pub listen: SocketAddr,
    pub http: SocketAddr,
    pub storage: String,
    pub new_timeline: bool,
    pub tls: Option<(PathBuf, PathBuf)>,
    /// `None` where SQL says it.
    pub superuser_password: Option<PathBuf>,
    pub connections_max: usize,
    /// `None` for one per core.
    pub threads: Option<usize>,
    pub memory_bytes: u64,
    /// For columns.
    pub cache_memory_bytes: u64,
    pub fragment_cache_bytes: u64,
    /// `None` for a part of what is free.
    pub cache_disk_bytes: Option<u64>,
    /// For pages of the catalog's trees, in which fresh rows are too.
    pub catalog_memory_bytes: usize,
    pub shutdown_grace_seconds: u64,
    pub cluster_statements: u32,
    pub drain_grace_seconds: u64,
    pub worker_backoff_seconds: u64,
    pub worker_patience_seconds: u64,
    /// `None` for the usual one.
    pub worker_door: Option<SocketAddr>,
    pub worker_launcher: Option<Launcher>,
    pub kubernetes: Option<String>,
    pub query_log_rows: usize,
    pub retention_seconds: u64,
    pub token_retention_seconds: u64,
    pub tokens_max: u64,
    pub checkpoint_interval_seconds: u64,
    pub max_wal_bytes: u64,
    pub settle_rows: Option<usize>,
    pub fresh_memory_bytes: u64,
    pub disk_reserve_bytes: u64,
    pub log: String,
    pub log_json: bool,
}

impl Config {
    /// Reads the TOML file, if any, under the given arguments, and fills in the defaults.
    ///
    /// # Errors
    /// The file cannot be read, or it or an option has a value that cannot be used.
    pub fn load(arguments: ServeArguments) -> anyhow::Result<Self> {
        let data = arguments.data.clone().unwrap_or_else(|| PathBuf::from("kiln-data"));
        let file = match &arguments.config {
            Some(path) => read_file(path)?,
            None => {
                let path = data.join("kiln.toml");
                if path.exists() { read_file(&path)? } else { ServeArguments::default() }
            }
        };
        arguments.over(file).into_config()
    }
}

impl ServeArguments {
    /// These options, and `below`'s where these say nothing.
    fn over(self, below: Self) -> Self {
        Self {
            config: self.config,
            data: self.data.or(below.data),
            listen: self.listen.or(below.listen),
            http: self.http.or(below.http),
            storage: self.storage.or(below.storage),
            new_timeline: self.new_timeline.or(below.new_timeline),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            superuser_password_file: self.superuser_password_file.or(below.superuser_password_file),
            max_connections: self.max_connections.or(below.max_connections),
            threads: self.threads.or(below.threads),
            memory_mb: self.memory_mb.or(below.memory_mb),
            cache_memory_mb: self.cache_memory_mb.or(below.cache_memory_mb),
            fragment_cache_mb: self.fragment_cache_mb.or(below.fragment_cache_mb),
            cache_disk_mb: self.cache_disk_mb.or(below.cache_disk_mb),
            shutdown_grace: self.shutdown_grace.or(below.shutdown_grace),
            cluster_statements: self.cluster_statements.or(below.cluster_statements),
            drain_grace: self.drain_grace.or(below.drain_grace),
            worker_backoff: self.worker_backoff.or(below.worker_backoff),
            worker_patience: self.worker_patience.or(below.worker_patience),
            worker_door: self.worker_door.or(below.worker_door),
            worker_launcher: self.worker_launcher.or(below.worker_launcher),
            kubernetes: self.kubernetes.or(below.kubernetes),
            query_log_rows: self.query_log_rows.or(below.query_log_rows),
            retention: self.retention.or(below.retention),
            token_retention: self.token_retention.or(below.token_retention),
            tokens_max: self.tokens_max.or(below.tokens_max),
            checkpoint_interval: self.checkpoint_interval.or(below.checkpoint_interval),
            max_wal_kb: self.max_wal_kb.or(below.max_wal_kb),
            settle_rows: self.settle_rows.or(below.settle_rows),
            fresh_memory_mb: self.fresh_memory_mb.or(below.fresh_memory_mb),
            disk_reserve_mb: self.disk_reserve_mb.or(below.disk_reserve_mb),
            log: self.log.or(below.log),
            log_format: self.log_format.or(below.log_format),
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
            data,
            listen: self.listen.unwrap_or_else(|| local(5433)),
            http: self.http.unwrap_or_else(|| local(8433)),
            storage,
            new_timeline: self.new_timeline.unwrap_or(false),
            tls,
            superuser_password: self.superuser_password_file,
            connections_max: self.max_connections.unwrap_or(500),
            threads: self.threads.map(|count| count.clamp(1, THREADS_MAX)),
            memory_bytes,
            cache_memory_bytes: cache_bytes - fragment_bytes,
            fragment_cache_bytes: fragment_bytes,
            cache_disk_bytes: self.cache_disk_mb.map(|megabytes| megabytes << 20),
            catalog_memory_bytes: usize::try_from(memory_bytes / 16).unwrap_or(usize::MAX).max(kv::redb::CACHE_BYTES),
            shutdown_grace_seconds: self.shutdown_grace.unwrap_or(10),
            cluster_statements: self.cluster_statements.unwrap_or(100).max(1),
            drain_grace_seconds: self.drain_grace.unwrap_or(300),
            worker_backoff_seconds: self.worker_backoff.unwrap_or(60),
            worker_patience_seconds: self.worker_patience.unwrap_or(60),
            worker_door: self.worker_door.as_deref().map(door).transpose()?,
            worker_launcher: self.worker_launcher.as_deref().map(launcher).transpose()?,
            kubernetes: self.kubernetes,
            query_log_rows: self.query_log_rows.unwrap_or(10_000),
            retention_seconds: self.retention.unwrap_or(86_400),
            token_retention_seconds: self.token_retention.unwrap_or(86_400),
            tokens_max: self.tokens_max.unwrap_or(1_000_000),
            checkpoint_interval_seconds: self.checkpoint_interval.unwrap_or(3_600).max(1),
            max_wal_bytes: max_wal_bytes(self.max_wal_kb, reserve_bytes),
            settle_rows: self.settle_rows,
            fresh_memory_bytes: self.fresh_memory_mb.map_or(memory_bytes / 4, |megabytes| megabytes << 20),
            disk_reserve_bytes: reserve_bytes,
            log: self.log.unwrap_or_else(|| "info".to_owned()),
            log_json: self.log_format.as_deref() == Some("json"),
        })
    }
}

/// An address with or without a port.
fn door(text: &str) -> anyhow::Result<SocketAddr> {
    let with_any_port = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, 0));
    let parsed = text.parse().or_else(|_| with_any_port());
    parsed.with_context(|| format!("--worker-door {text} is no address"))
}

fn launcher(text: &str) -> anyhow::Result<Launcher> {
    Launcher::parse(text).with_context(|| format!("--worker-launcher \"{text}\" cannot be used"))
}

fn read_file(path: &Path) -> anyhow::Result<ServeArguments> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    toml::from_str(&text).with_context(|| format!("cannot understand {}", path.display()))
}

/// What the log says has room in the reserve, and so have the trees that take it.
fn max_wal_bytes(kilobytes: Option<u64>, reserve_bytes: u64) -> u64 {
    let wanted = kilobytes.map_or(2 * kv::wal::FILE_BYTES, |kilobytes| kilobytes.saturating_mul(1024));
    if reserve_bytes == 0 { wanted } else { wanted.min(reserve_bytes / 4) }
}

/// 60 % of the machine's memory: the rest is for the page cache, buffers in flight and everything uncounted.
fn default_memory_bytes() -> u64 {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total_kb = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    total_kb.map_or(4 << 30, |kilobytes| kilobytes * 1024 / 10 * 6)
}
