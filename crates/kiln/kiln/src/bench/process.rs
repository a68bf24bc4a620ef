//! A server as a process of its own, for what one in this process cannot show: being killed, and remembering nothing.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio_postgres::Client;

/// A server that ends with this value.
pub(super) struct Process {
    child: Child,
    pub(super) url: String,
}

impl Process {
    /// A server over `data`, on free loopback ports, with further options of `kiln serve`, and a connection to it.
    pub(super) async fn start(data: &Path, options: &[String]) -> anyhow::Result<(Self, Client)> {
        let mut child = Command::new(std::env::current_exe().context("a running program has a path")?)
            .args(["serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start a server")?;
        let mut lines = BufReader::new(child.stderr.take().context("its log was asked for")?).lines();
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
        // What it goes on to log has to go somewhere.
        drop(tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} }));
        let url = format!("postgresql://kiln@{address}/kiln");
        let client = sql_client::connect(&url).await?;
        Ok((Self { child, url }, client))
    }

    /// Ends it as a crash does.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }
}
