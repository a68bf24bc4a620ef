//! Servers of one lane: a Kiln and a PostgreSQL, started here or reached by addresses.

use ::tests::postgres::Postgres;
use ::tests::server::Server;
use anyhow::{Context, anyhow};
use tempfile::TempDir;
use tokio_postgres::Config;

use crate::session::Session;

/// Lines of a server's log that are shown after its end.
const LOG_LINES: usize = 30;

/// Kiln and PostgreSQL, on which one file runs at a time.
pub(crate) struct Servers {
    pub(crate) kiln: KilnServer,
    pub(crate) postgres: PostgresServer,
}

impl Servers {
    /// Starts the servers that have no address.
    pub(crate) async fn start(kiln: Option<&str>, postgres: Option<&str>) -> anyhow::Result<Self> {
        Ok(Self { kiln: KilnServer::start(kiln)?, postgres: PostgresServer::start(postgres).await? })
    }
}

/// PostgreSQL as the oracle.
pub(crate) struct PostgresServer {
    /// Address of a database that exists.
    pub(crate) config: Config,
    _process: Option<Postgres>,
}

impl PostgresServer {
    async fn start(address: Option<&str>) -> anyhow::Result<Self> {
        if let Some(address) = address {
            let config = address.parse::<Config>().with_context(|| format!("{address} is no address of PostgreSQL"))?;
            return Ok(Self { config, _process: None });
        }
        let local = Postgres::start().ok_or_else(|| anyhow!("PostgreSQL is not installed; give --postgres"))?;
        // Waits until the server is ready.
        local.connect().await;
        Ok(Self { config: local_config(local.port), _process: Some(local) })
    }
}

/// Kiln, the server under test.
pub(crate) struct KilnServer {
    pub(crate) config: Config,
    local: Option<LocalKiln>,
}

/// Kiln that was started here, and its data folder.
struct LocalKiln {
    /// None while the server is being restarted.
    server: Option<Server>,
    folder: TempDir,
}

impl KilnServer {
    fn start(address: Option<&str>) -> anyhow::Result<Self> {
        if let Some(address) = address {
            let config = address.parse::<Config>().with_context(|| format!("{address} is no address of Kiln"))?;
            return Ok(Self { config, local: None });
        }
        let mut started = Self { config: Config::new(), local: None };
        started.start_afresh()?;
        Ok(started)
    }

    /// Returns whether the server was started here, so that everything in it may be dropped.
    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Returns whether the server has ended: its process, or its port if it was started elsewhere.
    pub(crate) async fn has_ended(&mut self) -> bool {
        match &mut self.local {
            Some(LocalKiln { server: Some(server), .. }) => server.exit_status().await.is_some(),
            Some(_) => true,
            None => Session::open(&self.config, "").await.is_err(),
        }
    }

    /// Returns the last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.local.as_ref().and_then(|local| local.server.as_ref()).map(Server::log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
    }

    /// Starts an ended server on its folder again, or on an empty one if it cannot read its folder.
    ///
    /// # Errors
    /// The server was started elsewhere, or does not start at all.
    pub(crate) fn restart(&mut self) -> anyhow::Result<()> {
        let local = self.local.as_mut().ok_or_else(|| anyhow!("Kiln has ended and was not started here"))?;
        local.server = None;
        match Server::try_start_on(local.folder.path(), &[]) {
            Ok(server) => {
                self.config = local_config(server.pg_port);
                local.server = Some(server);
                Ok(())
            }
            Err(_) => self.start_afresh(),
        }
    }

    /// Replaces the server by one on an empty folder.
    ///
    /// # Errors
    /// The server was started elsewhere, or does not start.
    pub(crate) fn replace(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.is_local(), "Kiln was not started here, and cannot be cleaned");
        self.start_afresh()
    }

    fn start_afresh(&mut self) -> anyhow::Result<()> {
        self.local = None;
        let folder = TempDir::with_prefix("kiln-suites-").context("cannot make a temporary folder")?;
        let server = Server::try_start_on(folder.path(), &[]).map_err(|log| anyhow!("Kiln does not start: {log}"))?;
        self.config = local_config(server.pg_port);
        self.local = Some(LocalKiln { server: Some(server), folder });
        Ok(())
    }
}

/// Returns the address of a server that was started here.
fn local_config(port: u16) -> Config {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("kiln").dbname("kiln");
    config
}
