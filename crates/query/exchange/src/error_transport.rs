//! Transports errors between processes, so that clients get the original SQLSTATE and message instead of an error text
//! of the library.
//!
//! This module is the adapter for texts of `datafusion-distributed`: no other reads them.

use datafusion::common::DataFusionError;
use functions::error::{from_datafusion, to_datafusion};
use types::{Condition, SqlError};
use url::Url;

#[cfg(test)]
mod tests;

/// Prefix of the text of an encoded error.
const ENCODED_PREFIX: &str = "kiln: ";
/// Start of the message that reports a lost worker, and of the detail that names it.
const LOST_MESSAGE: &str = "a worker of the cluster cannot be reached";
const LOST_DETAIL: &str = "Worker at ";
/// Part of the library's message for a task whose plan the instance did not deliver in time.
const PLAN_TIMEOUT: &str = "timed-out while waiting for the plan";

/// Encodes an error as text that [`decode_error`] decodes. An encoded error stays as it is: tasks of one worker read each
/// other's rows without an exchange over the network.
pub(super) fn encode_error(error: DataFusionError) -> DataFusionError {
    let error = find_sql_error(&error).unwrap_or_else(|| from_datafusion(error));
    let text = serde_json::to_string(&error).expect("an SqlError is serializable");
    DataFusionError::Execution(format!("{ENCODED_PREFIX}{text}"))
}

/// Decodes an error that came from a worker. Errors of the connection become `58030` for a lost worker, as do those of
/// a worker that its peers reach but the instance does not.
pub(super) fn decode_error(error: DataFusionError, worker: &Url) -> DataFusionError {
    let text = error.to_string();
    if text.contains(PLAN_TIMEOUT) {
        return to_datafusion(worker_lost_error(worker, "the instance cannot reach it"));
    }
    match find_sql_error(&error).or_else(|| parse_error(&text)) {
        Some(ours) => to_datafusion(ours),
        None if is_connection_error(&error) => to_datafusion(worker_lost_error(worker, &text)),
        None => error,
    }
}

/// Returns the error `58030` for a worker that does not answer, whichever process noticed.
pub(super) fn worker_lost_error(worker: &Url, why: &str) -> SqlError {
    let error = SqlError::new(Condition::IoError, format!("{LOST_MESSAGE}: {why}"));
    error.with_detail(format!("{LOST_DETAIL}{worker}")).with_hint("Run the query again.")
}

/// Returns the worker that was lost, if that is why a query failed.
pub fn lost_worker(error: &SqlError) -> Option<Url> {
    let is_lost = error.condition == Condition::IoError && error.message.starts_with(LOST_MESSAGE);
    let detail = error.detail.as_deref().filter(|_| is_lost)?;
    Url::parse(detail.strip_prefix(LOST_DETAIL)?).ok()
}

/// Returns whether a decoded error reports a lost worker.
pub(super) fn is_lost(error: &DataFusionError) -> bool {
    find_sql_error(error).is_some_and(|error| lost_worker(&error).is_some())
}

/// Returns the Kiln error inside an error of DataFusion, encoded or not.
fn find_sql_error(error: &DataFusionError) -> Option<SqlError> {
    match error {
        DataFusionError::Execution(text) => parse_error(text),
        DataFusionError::External(inner) => inner.downcast_ref::<SqlError>().cloned(),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => find_sql_error(inner),
        DataFusionError::Shared(inner) => find_sql_error(inner),
        DataFusionError::Collection(all) => all.iter().find_map(find_sql_error),
        _ => None,
    }
}

/// Decodes the error in a text, which may have a prefix added in transit.
fn parse_error(text: &str) -> Option<SqlError> {
    let (_, told) = text.split_once(ENCODED_PREFIX)?;
    serde_json::Deserializer::from_str(told).into_iter().next()?.ok()
}

/// Returns whether an error was caused by the connection.
fn is_connection_error(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::External(inner) => inner.is::<tonic::Status>() || inner.is::<tonic::transport::Error>(),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => is_connection_error(inner),
        DataFusionError::Shared(inner) => is_connection_error(inner),
        DataFusionError::Collection(all) => all.iter().any(is_connection_error),
        _ => false,
    }
}
