//! Errors on their way between processes: what a client is to be told must not become the text of an error of the library's.

use datafusion::common::DataFusionError;
use functions::error::{from_datafusion, to_datafusion};
use types::{Condition, SqlError};
use url::Url;

#[cfg(test)]
mod tests;

/// How the text begins that an error of ours is.
const MARK: &str = "kiln: ";
/// How the message begins that a worker is lost, and the detail that says which one.
const LOST: &str = "a worker of the cluster cannot be reached";
const AT: &str = "Worker at ";
/// What a worker tells those who want the rows of a task that the instance has not given to it in time.
const WITHOUT_PLAN: &str = "timed-out while waiting for the plan";

/// `error` as text that [`arrived`] reads. One that is such text already stays it: tasks of one worker read each other's rows without a way between.
pub(super) fn leaving(error: DataFusionError) -> DataFusionError {
    let error = ours(&error).unwrap_or_else(|| from_datafusion(error));
    let text = serde_json::to_string(&error).expect("its fields are numbers and texts");
    DataFusionError::Execution(format!("{MARK}{text}"))
}

/// What came from a worker as it was there; what the way itself caused as an error that says so. A worker that others reach and the instance does not is
/// lost too.
pub(super) fn arrived(error: DataFusionError, worker: &Url) -> DataFusionError {
    let text = error.to_string();
    if text.contains(WITHOUT_PLAN) {
        return to_datafusion(lost(worker, "the instance does not reach it"));
    }
    match ours(&error).or_else(|| told(&text)) {
        Some(ours) => to_datafusion(ours),
        None if is_of_the_way(&error) => to_datafusion(lost(worker, &text)),
        None => error,
    }
}

/// `58030`: a worker that does not answer, whichever process has found that out.
pub(super) fn lost(worker: &Url, why: &str) -> SqlError {
    let error = SqlError::new(Condition::IoError, format!("{LOST}: {why}"));
    error.with_detail(format!("{AT}{worker}")).with_hint("Run the query again.")
}

/// The worker that was lost, where that is why a query failed.
pub fn lost_worker(error: &SqlError) -> Option<Url> {
    let is_lost = error.condition == Condition::IoError && error.message.starts_with(LOST);
    let detail = error.detail.as_deref().filter(|_| is_lost)?;
    Url::parse(detail.strip_prefix(AT)?).ok()
}

/// Whether an error that has arrived says that a worker is lost.
pub(super) fn is_lost(error: &DataFusionError) -> bool {
    ours(error).is_some_and(|error| lost_worker(&error).is_some())
}

fn ours(error: &DataFusionError) -> Option<SqlError> {
    match error {
        DataFusionError::Execution(text) => told(text),
        DataFusionError::External(inner) => inner.downcast_ref::<SqlError>().cloned(),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => ours(inner),
        DataFusionError::Shared(inner) => ours(inner),
        DataFusionError::Collection(all) => all.iter().find_map(ours),
        _ => None,
    }
}

/// What a text says of ours, behind whatever was put before it on the way.
fn told(text: &str) -> Option<SqlError> {
    let (_, told) = text.split_once(MARK)?;
    serde_json::Deserializer::from_str(told).into_iter().next()?.ok()
}

fn is_of_the_way(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::External(inner) => inner.is::<tonic::Status>() || inner.is::<tonic::transport::Error>(),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => is_of_the_way(inner),
        DataFusionError::Shared(inner) => is_of_the_way(inner),
        DataFusionError::Collection(all) => all.iter().any(is_of_the_way),
        _ => false,
    }
}
