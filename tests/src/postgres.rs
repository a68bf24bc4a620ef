//! A real PostgreSQL as the oracle: a database cluster in a temporary folder, if PostgreSQL is installed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use types::{Clock, SystemClock};

/// Running PostgreSQL server, stopped when dropped.
pub struct Postgres {
    process: Child,
    pub port: u16,
    _folder: TempDir,
}

impl Postgres {
    /// Starts a server; `None` if PostgreSQL's server programs are not installed.
    pub fn start() -> Option<Self> {
        let programs = programs()?;
        let folder = TempDir::with_prefix("kiln-postgres-").expect("a temporary folder can be made");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("the folder is ours");
        let data = folder.path().join("data");
        let made = as_plain_user(&programs.join("initdb"))
            .args(["--username=kiln", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
            .arg(&data)
            .stdout(Stdio::null())
            .status();
        assert!(made.is_ok_and(|status| status.success()), "initdb makes a cluster");
        let port = free_port();
        let process = as_plain_user(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-c", "fsync=off", "-c"])
            .arg(format!("unix_socket_directories={}", folder.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("postgres starts");
        Some(Self { process, port, _folder: folder })
    }

    /// Connects to the database `kiln`, created on first use, after waiting until the server is ready.
    pub async fn connect(&self) -> Client {
        let clock = SystemClock::new();
        loop {
            if let Ok(client) = self.connect_to("postgres").await {
                // It may exist already.
                let _ = client.batch_execute("CREATE DATABASE kiln").await;
                return self.connect_to("kiln").await.expect("the database was made");
            }
            assert!(clock.monotonic().as_secs() < 60, "PostgreSQL serves within a minute");
            clock.sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    /// Connects to a database that exists.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn connect_to(&self, database: &str) -> Result<Client, tokio_postgres::Error> {
        let address = format!("host=127.0.0.1 port={} user=kiln dbname={database}", self.port);
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT requests PostgreSQL's fast shutdown, which also ends its child processes.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}

fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
    folders.sort();
    folders.into_iter().rfind(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// Returns a command that does not run as root, which PostgreSQL refuses: root switches to the package's user.
fn as_plain_user(program: &Path) -> Command {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    if !root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program).current_dir("/");
    command
}

pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has free ports");
    listener.local_addr().expect("a bound socket has an address").port()
}
