//! Server in a separate process, for benchmarks that kill it or need an empty memory.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_postgres::Client;

/// Server process, killed on drop.
pub(super) struct ServerProcess {
    child: Child,
    pub(super) url: String,
}

impl ServerProcess {
    /// Starts a server over `data` on free loopback ports, with further options of `kiln serve`, and connects to it.
    pub(super) async fn start(data: &Path, options: &[String]) -> anyhow::Result<(Self, Client)> {
        let mut child = Command::new(std::env::current_exe().context("cannot find this program's path")?)
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a server")?;
        let mut lines = BufReader::new(child.stderr.take().context("standard error is not piped")?).lines();
        let mut log = String::new();
        let address = loop {
            let Some(line) = lines.next_line().await? else { anyhow::bail!("the server ended:\n{log}") };
            let found = line.contains("ready for PostgreSQL clients").then(|| line.split("address=").nth(1)).flatten();
            if let Some(address) = found.and_then(|rest| rest.split_whitespace().next()) {
                break address.to_owned();
            }
            log.push_str(&line);
            log.push('\n');
        };
        // The rest of the log must be drained, or the server would block when the pipe is full.
        drop(tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} }));
        let url = format!("postgresql://kiln@{address}/kiln");
        let client = sql_client::connect(&url).await?;
        Ok((Self { child, url }, client))
    }

    /// Kills the server, like a crash.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }
}
