//! Peer engines from PyPI, each in a Python process that reads one JSON request per line and answers with times and
//! rows.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::answers::Row;
use crate::report::PeerResult;
use crate::{Error, QueryOptions};

/// Python driver that runs in the peer's process.
const DRIVER: &str = include_str!("peer_driver.py");

/// Names of the peers and the PyPI package of each.
const PACKAGES: &[(&str, &str)] = &[("duckdb", "duckdb"), ("datafusion", "datafusion"), ("clickhouse", "chdb")];

/// Kind of benchmark that a peer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Queries on tables that the peer has loaded.
    Loaded,
    /// Queries on Parquet files, each in a new process with cold caches.
    Cold,
    /// Loading of files.
    Load,
}

/// Running peer process.
pub struct Peer {
    name: String,
    description: String,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer; its package is installed into a private Python environment under the workspace.
    ///
    /// With [`Mode::Loaded`] it loads the Parquet files of `folder`.
    pub fn start(name: &str, options: &QueryOptions, mode: Mode, folder: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::Peer { peer: name.to_owned(), reason };
        let (_, package) = PACKAGES
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| failed("not known; duckdb, datafusion and clickhouse are".to_owned()))?;
        let python = prepare_environment(&options.workspace, package)
            .map_err(|reason| failed(format!("is missing: {reason}")))?;
        let mut process = Command::new(python)
            .args(["-c", DRIVER, name])
            .arg(folder)
            .args([mode.name(), &options.memory_mb.map_or_else(String::new, |megabytes| megabytes.to_string())])
            .args(options.suite.tables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let requests = process.stdin.take().expect("stdin was asked for");
        let answers = BufReader::new(process.stdout.take().expect("stdout was asked for"));
        let mut peer = Self { name: name.to_owned(), description: String::new(), process, requests, answers };
        let ready = peer.receive().map_err(failed)?;
        peer.description = format!("version {}", ready["version"].as_str().unwrap_or("?"));
        if mode == Mode::Loaded {
            let load = ready["load"].as_f64().unwrap_or(f64::NAN);
            write!(peer.description, ", loaded from Parquet in {load:.1} s").expect("strings grow");
        }
        Ok(peer)
    }

    /// Name of the peer.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version and load time, as text.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Runs `sql` `runs` times; `check` compares the rows with Kiln's answer.
    pub fn run(
        &mut self,
        number: usize,
        sql: &str,
        runs: usize,
        check: impl Fn(&[Row]) -> Result<(), String>,
    ) -> PeerResult {
        let answer = self.send(&json!({ "query": number, "sql": sql, "runs": runs })).and_then(|()| self.receive());
        let (runs, problem) = match answer {
            Ok(answer) => {
                (times(&answer), answer["error"].as_str().map(str::to_owned).or_else(|| check(&rows(&answer)).err()))
            }
            Err(broken) => (Vec::new(), Some(broken)),
        };
        PeerResult { peer: self.name.clone(), runs, problem }
    }

    /// Loads all tables from `csv` or `parquet` files into a new database on disk and returns the time.
    pub fn load(&mut self, format: &str) -> Result<Duration, Error> {
        let failed = |name: &str, reason: String| Error::Peer { peer: name.to_owned(), reason };
        let answer = self.send(&json!({ "load": format })).and_then(|()| self.receive());
        let answer = answer.map_err(|broken| failed(&self.name, broken))?;
        match (times(&answer).first(), answer["error"].as_str()) {
            (Some(time), None) => Ok(*time),
            (_, problem) => Err(failed(&self.name, problem.unwrap_or("did not say how long it took").to_owned())),
        }
    }

    fn send(&mut self, request: &Value) -> Result<(), String> {
        writeln!(self.requests, "{request}").and_then(|()| self.requests.flush()).map_err(|error| error.to_string())
    }

    fn receive(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err("its process ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| format!("{error} in {line:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Mode {
    /// Returns the driver's name of the mode.
    fn name(self) -> &'static str {
        match self {
            Self::Loaded => "hot",
            Self::Cold => "cold",
            Self::Load => "load",
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A driver that does not exit when its input closes is killed; only this child process is.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the Python interpreter of a private environment with `package`, created on first use.
fn prepare_environment(workspace: &Path, package: &str) -> Result<PathBuf, String> {
    let folder = workspace.join("peers");
    let python = folder.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let present = run_command(Command::new(&python).args(["-c", &format!("import {package}")]));
    if present.is_err() {
        run_command(Command::new(&python).args(["-m", "pip", "install", "--quiet", package, "pyarrow"]))?;
    }
    Ok(python)
}

fn run_command(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(told.trim().lines().last().unwrap_or("no reason given").to_owned())
}

fn times(answer: &Value) -> Vec<Duration> {
    let seconds = answer["seconds"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    seconds.map(Duration::from_secs_f64).collect()
}

fn rows(answer: &Value) -> Vec<Row> {
    let rows = answer["rows"].as_array().into_iter().flatten();
    rows.map(|row| row.as_array().into_iter().flatten().map(|value| value.as_str().map(str::to_owned)).collect())
        .collect()
}
