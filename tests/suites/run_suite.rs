//! Runs the files of a suite, several at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use tokio::task::JoinSet;

use crate::arguments::Arguments;
use crate::file_report::FileReport;
use crate::home::Home;
use crate::print_progress;
use crate::run_file::run_file;
use crate::servers::Servers;

/// Files between two lines of progress.
const PROGRESS_STEP: usize = 50;

/// Results of a suite.
#[derive(Debug, Default)]
pub(crate) struct SuiteReport {
    /// Files in the order of their paths.
    pub(crate) files: Vec<FileReport>,
    /// Errors for which files did not run.
    pub(crate) errors: Vec<String>,
}

/// Files that wait for a lane, in the order of their paths.
struct Queue {
    files: Vec<PathBuf>,
    next: AtomicUsize,
    done: AtomicUsize,
}

/// Runs a suite.
///
/// # Errors
/// The folder cannot be listed, or has no files of the suite.
pub(crate) async fn run_suite(arguments: &Arguments) -> anyhow::Result<SuiteReport> {
    let files = arguments.suite.files(&arguments.folder, arguments.only.as_deref(), arguments.slow)?;
    anyhow::ensure!(!files.is_empty(), "{} has no files of this suite", arguments.folder.display());
    let lanes = arguments.lanes(files.len());
    let queue = Arc::new(Queue { files, next: AtomicUsize::new(0), done: AtomicUsize::new(0) });
    let mut running = JoinSet::new();
    for _ in 0..lanes {
        running.spawn(run_lane(arguments.clone(), Arc::clone(&queue)));
    }
    let mut report = SuiteReport::default();
    while let Some(ended) = running.join_next().await {
        let (files, error) = ended.context("a lane ended early")?;
        report.files.extend(files);
        report.errors.extend(error.map(|error| format!("{error:#}")));
    }
    report.files.sort_by(|left, right| left.path.cmp(&right.path));
    report.errors.sort();
    Ok(report)
}

/// Runs files on servers of its own until none waits; returns an error with the files before it.
async fn run_lane(arguments: Arguments, queue: Arc<Queue>) -> (Vec<FileReport>, Option<anyhow::Error>) {
    let mut reports = Vec::new();
    let mut servers = match Servers::start(arguments.kiln.as_deref(), arguments.postgres.as_deref()).await {
        Ok(servers) => servers,
        Err(error) => return (reports, Some(error)),
    };
    loop {
        let number = queue.next.fetch_add(1, Ordering::Relaxed);
        let Some(path) = queue.files.get(number) else { return (reports, None) };
        let ran = Box::pin(run_one(&arguments, &mut servers, path, number)).await;
        match ran.with_context(|| path.display().to_string()) {
            Ok(report) => reports.push(report),
            Err(error) => return (reports, Some(error)),
        }
        let done = queue.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(PROGRESS_STEP) {
            print_progress(&format!("{done} of {} files", queue.files.len()));
        }
    }
}

async fn run_one(
    arguments: &Arguments,
    servers: &mut Servers,
    path: &Path,
    number: usize,
) -> anyhow::Result<FileReport> {
    let (suite, folder) = (arguments.suite, arguments.folder.canonicalize()?);
    let shown = path.strip_prefix(&arguments.folder).unwrap_or(path).display().to_string();
    if let Some(unmet) = suite.parse(path, &folder, "")?.unmet {
        return Ok(FileReport { path: shown, unmet: Some(unmet), ..FileReport::default() });
    }
    let home = Home::create(servers, number).await?;
    let script = suite.parse(path, &folder, &home.folder())?;
    let setup = suite.preamble(&arguments.folder).filter(|setup| setup.as_path() != path);
    let preamble = setup.map(|setup| suite.parse(&setup, &folder, &home.folder())).transpose()?;
    let mut report = run_file(servers, &home, &arguments.mode, preamble.as_ref(), &script).await?;
    for (location, log) in &report.server_ends {
        print_progress(&format!("KILN ENDED at {shown}:{}: {}\n{log}", location.line, location.sql));
    }
    home.remove(servers).await?;
    report.path = shown;
    Ok(report)
}
