//! Server processes for tests: the `kiln` binary with a temporary folder and free loopback ports.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

use crate::processes::{self, ProcessHandle};

/// Longest start of a server, in seconds.
const START_SECONDS_MAX: u64 = 60;
/// Seconds that workers try to reach a killed server: long enough for the next one on its folder.
const WORKER_PATIENCE_SECONDS: &str = "20";

/// Running `kiln serve`, killed when dropped.
pub struct Server {
    process: Child,
    pub pg_port: u16,
    pub http_port: u16,
    data: Data,
    log: Arc<Mutex<String>>,
    /// True to leave the workers to the next server on the folder.
    leaves_workers: bool,
}

enum Data {
    Owned(TempDir),
    External(PathBuf),
}

impl Server {
    /// Starts a server on an empty temporary folder.
    pub fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// Like `start`, with arguments and environment variables.
    pub fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let folder = TempDir::with_prefix("kiln-test-").expect("a temporary folder can be made");
        let path = folder.path().to_owned();
        Self::spawn(&path, Data::Owned(folder), arguments, variables).expect("the server starts")
    }

    /// Starts a server on a folder that outlives it.
    pub fn start_on(folder: &Path, arguments: &[&str]) -> Self {
        Self::spawn(folder, Data::External(folder.to_owned()), arguments, &[]).expect("the server starts")
    }

    /// Like `start_on`; returns the log of a server that ends before it is ready.
    pub fn try_start_on(folder: &Path, arguments: &[&str]) -> Result<Self, String> {
        Self::try_start_on_with(folder, arguments, &[])
    }

    /// Like `try_start_on`, with environment variables.
    pub fn try_start_on_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self, String> {
        Self::spawn(folder, Data::External(folder.to_owned()), arguments, variables)
    }

    fn spawn(folder: &Path, data: Data, arguments: &[&str], variables: &[(&str, &str)]) -> Result<Self, String> {
        let mut process = Command::new(kiln())
            .arg("serve")
            .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(folder)
            .args(arguments)
            .env("KILN_WORKER_PATIENCE", WORKER_PATIENCE_SECONDS)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}; run `cargo build -p kiln` first", kiln().display()))?;
        let stderr = process.stderr.take().expect("stderr was asked for");
        let (ready, wait) = mpsc::channel();
        let log = Arc::<Mutex<String>>::default();
        let lines = Arc::clone(&log);
        std::thread::spawn(move || {
            let (mut pg, mut http) = (None, None);
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if line.contains("ready for PostgreSQL clients") {
                    pg = port(&line);
                } else if line.contains("ready for HTTP") {
                    http = port(&line);
                }
                if std::env::var_os("KILN_TEST_LOG").is_some() {
                    print_log(&line);
                }
                let mut lines = lines.lock().expect("nobody panics with it");
                lines.push_str(&line);
                lines.push('\n');
                if let (Some(pg), Some(http)) = (pg, http) {
                    // A test that has ended no longer waits for it.
                    let _ = ready.send(Ok((pg, http)));
                }
            }
            let _ = ready.send(Err(lines.lock().expect("nobody panics with it").clone()));
        });
        match wait.recv_timeout(Duration::from_secs(START_SECONDS_MAX)) {
            Ok(Ok((pg_port, http_port))) => Ok(Self { process, pg_port, http_port, data, log, leaves_workers: false }),
            Ok(Err(lines)) => {
                let _ = process.wait();
                Err(lines)
            }
            Err(_) => {
                let _ = process.kill();
                Err(format!("not ready after {START_SECONDS_MAX} s"))
            }
        }
    }

    /// Returns the data folder.
    pub fn folder(&self) -> &Path {
        match &self.data {
            Data::Owned(folder) => folder.path(),
            Data::External(folder) => folder,
        }
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the log so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("nobody panics with it").clone()
    }

    /// Returns the exit status if the server ends by itself within a moment.
    pub async fn exit_status(&mut self) -> Option<ExitStatus> {
        for _ in 0..20 {
            let ended = self.process.try_wait().expect("it is our child");
            if ended.is_some() {
                return ended;
            }
            SystemClock::new().sleep(Duration::from_millis(10)).await;
        }
        None
    }

    /// Connects as the default role; the connection's task ends with the client.
    pub async fn connect(&self) -> Client {
        self.connect_as("user=kiln dbname=kiln").await.expect("the server answers")
    }

    /// Connects with other parameters, in libpq's `key=value` form.
    pub async fn connect_as(&self, parameters: &str) -> Result<Client, tokio_postgres::Error> {
        let address = format!("host=127.0.0.1 port={} {parameters}", self.pg_port);
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// Kills the server, as a power failure would; its workers wait for the next one.
    pub fn kill(mut self) {
        self.leaves_workers = true;
        self.process.kill().expect("it is our child");
        self.process.wait().expect("it is our child");
    }

    /// Stops the server with SIGTERM and waits; true for a clean exit.
    pub fn stop(mut self) -> bool {
        self.leaves_workers = true;
        let asked = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status();
        asked.is_ok_and(|status| status.success()) && self.process.wait().is_ok_and(|status| status.success())
    }
}

/// Also kills the workers, which no server would use again.
impl Drop for Server {
    fn drop(&mut self) {
        // After the process has ended, its PID may be reused.
        let running = matches!(self.process.try_wait(), Ok(None)).then(|| self.pid());
        let workers = if self.leaves_workers { Vec::new() } else { processes::workers(running, self.folder()) };
        let _ = self.process.kill();
        let _ = self.process.wait();
        workers.iter().for_each(ProcessHandle::kill);
    }
}

/// Returns the binary next to this program's, or the one `KILN_BIN` names.
pub fn kiln() -> PathBuf {
    if let Some(path) = std::env::var_os("KILN_BIN") {
        return path.into();
    }
    let own = std::env::current_exe().expect("a running program has a path");
    let folder = own.parent().expect("a program lies in a folder");
    // Tests lie in <profile>/deps, other programs in <profile>.
    let profile = if folder.ends_with("deps") { folder.parent().expect("deps lies in a folder") } else { folder };
    profile.join("kiln")
}

/// Returns true if the long variants of tests run: `make nightly`.
pub fn nightly() -> bool {
    std::env::var_os("KILN_NIGHTLY").is_some()
}

/// Returns the folder of reference data beside the project, if it exists.
pub fn reference_data() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/tpc");
    folder.exists().then_some(folder)
}

#[expect(clippy::print_stderr, reason = "KILN_TEST_LOG shows servers' logs")]
fn print_log(line: &str) {
    eprintln!("{line}");
}

fn port(line: &str) -> Option<u16> {
    let address = line.split("address=").nth(1)?.split_whitespace().next()?;
    address.rsplit(':').next()?.parse().ok()
}
