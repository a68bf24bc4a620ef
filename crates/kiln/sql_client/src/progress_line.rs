//! ProgressLine line on the terminal for a long statement: its elapsed time, and the progress of a COPY.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use super::connect::{self, ConnectionTarget};

/// Time before the line is first shown.
const FIRST_SHOWN_AFTER: Duration = Duration::from_secs(1);
/// Time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// ProgressLine line of a running statement.
pub(crate) struct ProgressLine {
    stopped: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts watching the statement that `client` is about to run. Shows nothing unless standard error is a terminal.
    pub(crate) async fn start(target: &ConnectionTarget, client: &Client) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            return Self { stopped, task: None };
        }
        let backend = query_backend_pid(client).await;
        let task = tokio::spawn(show_progress(target.clone(), backend, Arc::clone(&stopped)));
        Self { stopped, task: Some(task) }
    }

    /// Ends the line and clears it.
    pub(crate) fn stop(&self) {
        if !self.stopped.swap(true, Ordering::Relaxed)
            && let Some(task) = &self.task
        {
            task.abort();
            show_line("");
        }
    }
}

async fn query_backend_pid(client: &Client) -> Option<i32> {
    let messages = client.simple_query("SELECT pg_backend_pid()").await.ok()?;
    messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    })
}

async fn show_progress(target: ConnectionTarget, backend: Option<i32>, stopped: Arc<AtomicBool>) {
    let clock = SystemClock::new();
    clock.sleep(FIRST_SHOWN_AFTER).await;
    // The connection of the statement is busy, so the progress is queried on a second one.
    let watcher = connect::connect(&target).await.ok();
    while !stopped.load(Ordering::Relaxed) {
        let copied = match (&watcher, backend) {
            (Some(watcher), Some(backend)) => query_copy_progress(&watcher.client, backend).await,
            _ => None,
        };
        if !stopped.load(Ordering::Relaxed) {
            show_line(&format!("{:>7.1} s{}", clock.monotonic().as_secs_f64(), copied.unwrap_or_default()));
        }
        clock.sleep(UPDATE_INTERVAL).await;
    }
}

async fn query_copy_progress(watcher: &Client, backend: i32) -> Option<String> {
    let sql = "SELECT tuples_processed, bytes_processed, bytes_total FROM pg_stat_progress_copy WHERE pid = $1";
    let row = watcher.query_opt(sql, &[&backend]).await.ok()??;
    let (rows, bytes, total): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    let share = if 0 < total { format!(", {} %", bytes * 100 / total) } else { String::new() };
    Some(format!("   {rows} rows, {} MB{share}", bytes / 1_000_000))
}

/// Replaces the terminal's current line, and ignores errors.
fn show_line(line: &str) {
    let mut terminal = std::io::stderr();
    let _ = write!(terminal, "\r\x1b[K{line}");
    let _ = terminal.flush();
}
