//! Session on either server: runs one statement at a time, with a limit of time.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use tokio_postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

use crate::answer::{Answer, Failure, ROWS_MAX, Reply, Row};
use crate::sql::CopyDirection;

/// Longest time of a statement on the server, in milliseconds.
pub(crate) const STATEMENT_TIMEOUT_MS: u32 = 20_000;
/// Longest wait for a server that does not end a statement by itself.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);
/// Longest wait for the end of a cancelled statement.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// SQLSTATE of a statement that was cancelled, here by its timeout.
const CANCELED: &str = "57014";

/// Connection to a server; closed when dropped.
pub(crate) struct Session {
    client: Client,
}

impl Session {
    /// Connects and runs `setup`, one or more statements.
    pub(crate) async fn open(config: &Config, setup: &str) -> anyhow::Result<Self> {
        let (client, connection) = config.connect(NoTls).await.context("cannot connect")?;
        tokio::spawn(connection);
        client.batch_execute(setup).await.with_context(|| format!("cannot run {setup}"))?;
        Ok(Self { client })
    }

    /// Runs a statement. COPY through the client sends `copy_data` or returns what it receives as rows.
    pub(crate) async fn run(&self, sql: &str, copy: Option<CopyDirection>, copy_data: &str) -> Reply {
        let mut running = Box::pin(async {
            match copy {
                None => self.query(sql).await,
                Some(CopyDirection::FromClient) => self.copy_in(sql, copy_data).await,
                Some(CopyDirection::ToClient) => self.copy_out(sql).await,
            }
        });
        if let Ok(outcome) = tokio::time::timeout(ANSWER_TIMEOUT, &mut running).await {
            return outcome.map_or_else(|error| self.reply_to_error(&error), Reply::Answer);
        }
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, self.client.cancel_token().cancel_query(NoTls)).await;
        match tokio::time::timeout(CANCEL_TIMEOUT, running).await {
            Ok(_) => Reply::TimedOut,
            Err(_) => Reply::Lost("the statement goes on after its timeout and a cancellation".to_owned()),
        }
    }

    /// Runs a statement of the program itself.
    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<Answer> {
        match self.run(sql, None, "").await {
            Reply::Answer(answer) => Ok(answer),
            Reply::Refused(failure) => anyhow::bail!("{sql}: {} {}", failure.sqlstate, failure.message),
            Reply::TimedOut => anyhow::bail!("{sql}: timed out"),
            Reply::Lost(cause) => anyhow::bail!("{sql}: {cause}"),
        }
    }

    async fn query(&self, sql: &str) -> Result<Answer, Error> {
        let mut messages = Box::pin(self.client.simple_query_raw(sql).await?);
        let mut answer = Answer::default();
        while let Some(message) = messages.try_next().await? {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    answer.columns = columns.iter().map(|column| column.name().to_owned()).collect();
                }
                SimpleQueryMessage::Row(row) => {
                    answer.row_count += 1;
                    if answer.rows.len() < ROWS_MAX {
                        answer.rows.push((0..row.len()).map(|at| value(row.try_get(at))).collect());
                    }
                }
                SimpleQueryMessage::CommandComplete(affected) => answer.affected = affected,
                _ => {}
            }
        }
        Ok(answer)
    }

    async fn copy_in(&self, sql: &str, data: &str) -> Result<Answer, Error> {
        let mut sink = Box::pin(self.client.copy_in(sql).await?);
        let sent = sink.send(Bytes::copy_from_slice(data.as_bytes())).await;
        // The server's error comes with the end.
        let affected = sink.as_mut().finish().await?;
        sent?;
        Ok(Answer { affected, ..Answer::default() })
    }

    async fn copy_out(&self, sql: &str) -> Result<Answer, Error> {
        let mut chunks = Box::pin(self.client.copy_out(sql).await?);
        let mut data = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            data.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&data);
        let rows: Vec<Row> = text.lines().take(ROWS_MAX).map(|line| vec![Some(line.to_owned())]).collect();
        Ok(Answer { columns: vec!["copy".to_owned()], row_count: text.lines().count(), rows, affected: 0 })
    }

    fn reply_to_error(&self, error: &Error) -> Reply {
        match error.as_db_error() {
            Some(refusal) if refusal.code().code() == CANCELED => Reply::TimedOut,
            Some(refusal) if !self.client.is_closed() => {
                let (sqlstate, message) = (refusal.code().code().to_owned(), refusal.message().to_owned());
                Reply::Refused(Failure { sqlstate, message })
            }
            Some(refusal) => Reply::Lost(format!("{} {}", refusal.code().code(), refusal.message())),
            None => Reply::Lost(anyhow::Chain::new(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")),
        }
    }
}

/// Returns a value as text; a text that is not UTF-8 is an answer, too.
fn value(value: Result<Option<&str>, Error>) -> Option<String> {
    value.map_or_else(|_| Some("(not UTF-8)".to_owned()), |value| value.map(str::to_owned))
}
