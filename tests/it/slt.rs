//! SQL files (sqllogictest format) by topic, run on Kiln (with and without the engine, without the optimizer, on
//! worker processes) and on PostgreSQL as the oracle.
//!
//! Each file runs in its own schema on a shared server. The test starts PostgreSQL if it is installed.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::cluster::wait_until;
use crate::postgres::Postgres;
use crate::server::Server;

const WORKERS: &str = "CREATE CLUSTER pair WITH (NODE_COUNT = 2, HARDWARE_INSTANCE = local, AUTO_SUSPEND = NULL);
                       GRANT USAGE ON CLUSTER pair TO PUBLIC";
const ON_WORKERS: &str = "USE CLUSTER pair; SET min_parallel_table_scan_size = 0";

#[tokio::test(flavor = "multi_thread")]
async fn sql_files_pass_on_kiln() {
    pass_on_kiln("SET kiln.engine = off").await;
}

/// Catches wrong rewrites that would affect both sides of a comparison.
#[tokio::test(flavor = "multi_thread")]
async fn sql_files_pass_without_the_optimizer() {
    pass_on_kiln("SET kiln.engine = off; SET kiln.optimizer = off").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_files_pass_on_the_engine() {
    pass_on_kiln("SET kiln.engine = on").await;
}

/// Flushes rows before they are read, so that workers see them, and divides every query, however small. Lines that
/// show where a statement runs or where rows are stored are skipped (`skipif workers`).
#[tokio::test(flavor = "multi_thread")]
async fn sql_files_pass_on_workers() {
    let server = Server::start();
    server.connect().await.batch_execute(WORKERS).await.expect("a cluster can be made");
    let ready = "SELECT count(*) = 2 FROM sys.worker WHERE cluster = 'pair' AND state = 'ready'";
    wait_until(&server.connect().await, ready).await;
    let mut failures = Vec::new();
    // This file expects snapshot ages in single seconds, from statements that do not wait for workers.
    for path in files().into_iter().filter(|path| !path.ends_with("snapshot_age.slt")) {
        let client = server.connect().await;
        client.batch_execute(ON_WORKERS).await.expect("the cluster is there");
        failures.extend(run(&path, client, "kiln", Some(server.connect().await)).await);
    }
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} SQL files fail on workers:\n{}", failures.join("\n\n"));
}

/// Runs all files on Kiln; each session first executes `mode`.
async fn pass_on_kiln(mode: &str) {
    let server = Server::start();
    let mut failures = Vec::new();
    for path in files() {
        let client = server.connect().await;
        client.batch_execute(mode).await.expect("modes can be set");
        failures.extend(run(&path, client, "kiln", None).await);
    }
    let failed = failures.len();
    assert!(failures.is_empty(), "{failed} SQL files fail after {mode}:\n{}", failures.join("\n\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_files_pass_on_postgres() {
    let Some(postgres) = Postgres::start() else {
        println!("skipped: PostgreSQL is not installed");
        return;
    };
    let mut failures = Vec::new();
    for path in files() {
        let client = postgres.connect().await;
        failures.extend(run(&path, client, "postgresql", None).await);
    }
    assert!(failures.is_empty(), "{} SQL files fail on PostgreSQL:\n{}", failures.len(), failures.join("\n\n"));
}

/// Runs one file as `engine`, the label in its `onlyif` and `skipif` lines; returns the failure, if any.
///
/// `flusher` flushes the tables that the file has changed before they are read.
async fn run(path: &Path, client: Client, engine: &'static str, flusher: Option<Client>) -> Option<String> {
    let topic = path.file_stem().expect("files have names").to_string_lossy().replace('-', "_");
    let setup = format!(
        "DROP SCHEMA IF EXISTS slt_{topic} CASCADE; CREATE SCHEMA slt_{topic}; SET search_path = slt_{topic}, public; \
         SET TimeZone = 'UTC'; SET DateStyle = 'ISO, MDY'"
    );
    if let Err(error) = client.batch_execute(&setup).await {
        return Some(format!("{}: cannot set up: {}", path.display(), words(&error)));
    }
    let is_on_workers = flusher.is_some();
    let mut flusher = Some(flusher.map(|client| Flusher::new(client, &topic)));
    let client = std::sync::Arc::new(client);
    let mut runner = Runner::new(|| {
        let (client, flusher) = (std::sync::Arc::clone(&client), flusher.take().flatten());
        async move { Ok(Session { client, engine, flusher }) }
    });
    runner.add_label(engine);
    if is_on_workers {
        runner.add_label("workers");
    }
    // Folder for COPY, writable for the server's user, whoever that is.
    let folder = tempfile::TempDir::with_prefix("kiln-slt-").expect("a temporary folder can be made");
    let all = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder.path(), all).expect("the folder is ours");
    runner.set_var("FOLDER".to_owned(), folder.path().display().to_string());
    runner.run_file_async(path).await.err().map(|error| error.to_string())
}

fn files() -> Vec<PathBuf> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("tests/slt is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "slt") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("slt"), &mut found);
    found.sort();
    if let Ok(only) = std::env::var("SLT") {
        found.retain(|path| path.to_string_lossy().contains(&only));
    }
    found
}

struct Session {
    client: std::sync::Arc<Client>,
    engine: &'static str,
    flusher: Option<Flusher>,
}

/// Flushes the tables that a session has changed before it reads.
struct Flusher {
    client: Client,
    schema: String,
    /// Tables changed since their last flush.
    changed: BTreeSet<String>,
    is_in_transaction: bool,
}

impl Flusher {
    fn new(client: Client, topic: &str) -> Self {
        Self { client, schema: format!("slt_{topic}"), changed: BTreeSet::new(), is_in_transaction: false }
    }

    async fn before(&mut self, sql: &str) {
        let lower = sql.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| c.is_whitespace() || c == '(' || c == ';').collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            ["begin", ..] | ["start", "transaction", ..] => self.is_in_transaction = true,
            ["commit" | "rollback" | "end" | "abort", ..] => self.is_in_transaction = false,
            ["insert" | "merge", "into", table, ..]
            | ["delete", "from", table, ..]
            | ["update" | "copy" | "truncate", table, ..] => {
                self.changed.insert((*table).to_owned());
            }
            ["create", "table", table, rest @ ..] if rest.contains(&"as") => {
                self.changed.insert((*table).to_owned());
            }
            _ => {}
        }
        let is_reader =
            matches!(words.first(), Some(&("select" | "with" | "values" | "table" | "declare" | "execute")));
        if !is_reader || self.is_in_transaction || self.changed.is_empty() {
            return;
        }
        let path = format!("SET search_path = {}, public", self.schema);
        self.client.batch_execute(&path).await.expect("a schema can be set");
        for table in std::mem::take(&mut self.changed) {
            // Temporary and dropped tables are visible to their session only.
            let _ = self.client.batch_execute(&format!("VACUUM {table}")).await;
        }
    }
}

/// Error of a server: SQLSTATE and message, so that files can expect either.
#[derive(Debug)]
struct Refusal(String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

#[async_trait]
impl AsyncDB for Session {
    type Error = Refusal;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refusal> {
        if let Some(flusher) = &mut self.flusher {
            flusher.before(sql).await;
        }
        let messages = self.client.simple_query(sql).await.map_err(|error| Refusal(words(&error)))?;
        let (mut rows, mut columns, mut affected) = (Vec::new(), None, 0);
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(described) => columns = Some(described.len()),
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|column| shown(row.get(column))).collect())
                }
                SimpleQueryMessage::CommandComplete(count) => affected = count,
                _ => {}
            }
        }
        Ok(match columns {
            Some(count) => DBOutput::Rows { types: vec![DefaultColumnType::Any; count], rows },
            None => DBOutput::StatementComplete(affected),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        self.engine
    }
}

/// Formats a value; NULL and the empty text must differ in the file.
fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.replace('\n', "\\n"),
    }
}

fn words(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |told| format!("{}: {}", told.code().code(), told.message()))
}
