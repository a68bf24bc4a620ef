//! Other database systems from PyPI that Kiln is compared with, each in a Python process that reads one JSON request per
//! line and answers with times and rows.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::query_report::SystemResult;
use crate::result_comparison::Row;
use crate::{Error, QueryOptions};

/// Python driver that runs in the system's process.
const PYTHON_DRIVER: &str = include_str!("peer_driver.py");

/// Names of the systems and the PyPI package of each.
const PYPI_PACKAGES: &[(&str, &str)] = &[("duckdb", "duckdb"), ("datafusion", "datafusion"), ("clickhouse", "chdb")];

/// Kind of benchmark that a system runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemMode {
    /// Queries on tables that the system has loaded.
    LoadedTables,
    /// Queries on Parquet files, each in a new process with cold caches.
    ParquetFiles,
    /// Loading of files.
    LoadFiles,
}

/// A compared system, which runs in a process.
pub struct ComparedSystem {
    name: String,
    description: String,
    process: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl ComparedSystem {
    /// Starts a system; its package is installed into a private Python environment under the workspace.
    ///
    /// With [`SystemMode::LoadedTables`] it loads the Parquet files of `folder`.
    pub fn start(name: &str, options: &QueryOptions, mode: SystemMode, folder: &Path) -> Result<Self, Error> {
        let failed = |reason: String| Error::ComparedSystem { system: name.to_owned(), reason };
        let (_, package) = PYPI_PACKAGES.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            failed("there is no driver for it; there are drivers for duckdb, datafusion and clickhouse".to_owned())
        })?;
        let python = prepare_environment(&options.workspace, package)
            .map_err(|reason| failed(format!("it could not be installed: {reason}")))?;
        let mut process = Command::new(python)
            .args(["-c", PYTHON_DRIVER, name])
            .arg(folder)
            .args([mode.driver_name(), &options.memory_mb.map_or_else(String::new, |megabytes| megabytes.to_string())])
            .args(options.suite.tables())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let requests = process.stdin.take().expect("stdin was asked for");
        let responses = BufReader::new(process.stdout.take().expect("stdout was asked for"));
        let mut system = Self { name: name.to_owned(), description: String::new(), process, requests, responses };
        let ready = system.receive_response().map_err(failed)?;
        system.description = format!("version {}", ready["version"].as_str().unwrap_or("?"));
        if mode == SystemMode::LoadedTables {
            let load = ready["load"].as_f64().unwrap_or(f64::NAN);
            write!(system.description, ", loaded from Parquet in {load:.1} s").expect("strings grow");
        }
        Ok(system)
    }

    /// Name of the system.
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
    ) -> SystemResult {
        let answer = self
            .send_request(&json!({ "query": number, "sql": sql, "runs": runs }))
            .and_then(|()| self.receive_response());
        let (runs, problem) = match answer {
            Ok(answer) => (
                run_times(&answer),
                answer["error"].as_str().map(str::to_owned).or_else(|| check(&response_rows(&answer)).err()),
            ),
            Err(broken) => (Vec::new(), Some(broken)),
        };
        SystemResult { system: self.name.clone(), runs, problem }
    }

    /// Loads all tables from `csv` or `parquet` files into a new database on disk and returns the time.
    pub fn load(&mut self, format: &str) -> Result<Duration, Error> {
        let failed = |name: &str, reason: String| Error::ComparedSystem { system: name.to_owned(), reason };
        let answer = self.send_request(&json!({ "load": format })).and_then(|()| self.receive_response());
        let answer = answer.map_err(|broken| failed(&self.name, broken))?;
        match (run_times(&answer).first(), answer["error"].as_str()) {
            (Some(time), None) => Ok(*time),
            (_, problem) => {
                Err(failed(&self.name, problem.unwrap_or("it did not report how long the load took").to_owned()))
            }
        }
    }

    fn send_request(&mut self, request: &Value) -> Result<(), String> {
        writeln!(self.requests, "{request}").and_then(|()| self.requests.flush()).map_err(|error| error.to_string())
    }

    fn receive_response(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.responses.read_line(&mut line) {
            Ok(0) => Err("its process ended".to_owned()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| format!("{error} in {line:?}")),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl SystemMode {
    /// Returns the driver's name of the mode.
    fn driver_name(self) -> &'static str {
        match self {
            Self::LoadedTables => "hot",
            Self::ParquetFiles => "cold",
            Self::LoadFiles => "load",
        }
    }
}

impl Drop for ComparedSystem {
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

fn run_times(answer: &Value) -> Vec<Duration> {
    let seconds = answer["seconds"].as_array().into_iter().flatten().filter_map(Value::as_f64);
    seconds.map(Duration::from_secs_f64).collect()
}

fn response_rows(answer: &Value) -> Vec<Row> {
    let rows = answer["rows"].as_array().into_iter().flatten();
    rows.map(|row| row.as_array().into_iter().flatten().map(|value| value.as_str().map(str::to_owned)).collect())
        .collect()
}
