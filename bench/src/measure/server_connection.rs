//! Connections to the measured server, which may be any that speaks PostgreSQL's protocol.

use bytes::Bytes;
use futures::SinkExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

pub use tokio_postgres::types::ToSql as Value;

use crate::Error;

/// Bytes of COPY data sent at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// Storage layout of tables on Kiln.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// The server's default.
    #[default]
    Default,
    Hybrid,
    Row,
    Column,
}

/// Server under measurement.
#[derive(Debug, Clone)]
pub struct Server {
    config: Config,
    /// Output of `version()`.
    pub version: String,
}

impl Server {
    /// Connects to `postgresql://user@host:port/database` and reads the server's version.
    pub async fn connect_to(url: &str) -> Result<Self, Error> {
        let config: Config =
            url.parse().map_err(|source| Error::Server { action: format!("reading the address {url}"), source })?;
        let mut server = Self { config, version: String::new() };
        let client = server.connect().await?;
        let row = client
            .query_one("SELECT version()", &[])
            .await
            .map_err(|source| Error::Server { action: "asking for the version".to_owned(), source })?;
        server.version = row.get(0);
        Ok(server)
    }

    #[must_use]
    pub fn is_kiln(&self) -> bool {
        self.version.contains("Kiln")
    }

    /// Opens a new connection.
    pub async fn connect(&self) -> Result<Client, Error> {
        let connected = self.config.connect(NoTls).await;
        let (client, connection) =
            connected.map_err(|source| Error::Server { action: "connecting".to_owned(), source })?;
        // The connection task ends with the client, which also reports its errors.
        drop(tokio::spawn(connection));
        Ok(client)
    }

    /// Returns the clause of CREATE TABLE that selects `storage`; empty on PostgreSQL.
    #[must_use]
    pub fn storage_clause(&self, storage: Storage) -> &'static str {
        match storage {
            _ if !self.is_kiln() => "",
            Storage::Default => "",
            Storage::Hybrid => " WITH (storage = hybrid)",
            Storage::Row => " WITH (storage = row)",
            Storage::Column => " WITH (storage = column)",
        }
    }
}

/// Executes SQL statements; `action` describes the step in errors.
pub async fn run_statements(client: &Client, action: &str, sql: &str) -> Result<(), Error> {
    client.batch_execute(sql).await.map_err(|source| Error::Server { action: action.to_owned(), source })
}

/// Prepares a statement.
pub async fn prepare(client: &Client, sql: &str) -> Result<Statement, Error> {
    client.prepare(sql).await.map_err(|source| Error::Server { action: format!("preparing {sql}"), source })
}

/// Returns the rows of a prepared query.
pub async fn query_rows(client: &Client, query: &Statement, values: &[&(dyn Value + Sync)]) -> Result<Vec<Row>, Error> {
    client.query(query, values).await.map_err(|source| Error::Server { action: "a query".to_owned(), source })
}

/// Returns the only row of a prepared query.
pub async fn query_row(client: &Client, query: &Statement, values: &[&(dyn Value + Sync)]) -> Result<Row, Error> {
    let found = query_rows(client, query, values).await?;
    let count = found.len();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(row), None) => Ok(row),
        _ => Err(Error::Rows { expected: 1, found: count }),
    }
}

/// Executes a prepared statement and returns the number of affected rows.
pub async fn execute(client: &Client, statement: &Statement, values: &[&(dyn Value + Sync)]) -> Result<u64, Error> {
    client.execute(statement, values).await.map_err(|source| Error::Server { action: "a statement".to_owned(), source })
}

/// Returns true for a serialization failure or deadlock: the transaction has to be retried.
#[must_use]
pub fn is_retryable(error: &Error) -> bool {
    let Error::Server { source, .. } = error else { return false };
    matches!(source.code(), Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED))
}

/// COPY FROM STDIN in PostgreSQL's text format.
pub struct CopyIn {
    sink: std::pin::Pin<Box<tokio_postgres::CopyInSink<Bytes>>>,
    buffer: String,
    action: String,
}

impl CopyIn {
    /// Starts a COPY into a table.
    pub async fn begin(client: &Client, table: &str) -> Result<Self, Error> {
        let action = format!("loading {table}");
        let sink = client.copy_in(&format!("COPY {table} FROM STDIN")).await;
        let sink = sink.map_err(|source| Error::Server { action: action.clone(), source })?;
        Ok(Self { sink: Box::pin(sink), buffer: String::with_capacity(CHUNK_BYTES + 4_096), action })
    }

    /// Appends a row: its fields separated by tabs, without characters that need escaping.
    pub async fn write_row(&mut self, fields: &str) -> Result<(), Error> {
        self.buffer.push_str(fields);
        self.buffer.push('\n');
        if self.buffer.len() < CHUNK_BYTES { Ok(()) } else { self.flush().await }
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let chunk = std::mem::replace(&mut self.buffer, String::with_capacity(CHUNK_BYTES + 4_096));
        let sent = self.sink.send(Bytes::from(chunk)).await;
        sent.map_err(|source| Error::Server { action: self.action.clone(), source })
    }

    /// Ends the COPY and returns the number of rows.
    pub async fn finish(mut self) -> Result<u64, Error> {
        self.flush().await?;
        let done = self.sink.as_mut().finish().await;
        done.map_err(|source| Error::Server { action: self.action.clone(), source })
    }
}
