//! The rows of a running query, handed over one batch at a time.

use std::any::Any;
use std::sync::Arc;

use arrow::array::RecordBatch;
use binder::OutputColumn;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use functions::error::from_datafusion;
use futures::StreamExt;
use futures::stream::BoxStream;
use scheduler::{Lease, QueryMemory};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use types::interrupt::canceled;
use types::{Condition, SqlError, SqlResult};

/// Batches that wait for a slow reader: with those in the operators' hands all that a result of any size needs.
pub(super) const BATCHES_AHEAD: usize = 2;

/// The rows of a query, made as they are asked for. Dropping it stops the query.
pub struct RowStream {
    pub columns: Vec<OutputColumn>,
    /// Ends after its first error.
    pub stream: BoxStream<'static, SqlResult<RecordBatch>>,
}

/// Runs operators, whose batches go to `sender`.
pub(super) async fn produce(
    operators: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    sender: mpsc::Sender<SqlResult<RecordBatch>>,
) {
    // A query counts as running on its worker as long as its session is there.
    let _session = Arc::clone(&task);
    let mut rows = match execute_stream(operators, task) {
        Ok(rows) => rows,
        Err(error) => {
            // A reader that has gone does not miss it.
            let _ = sender.send(Err(from_datafusion(error))).await;
            return;
        }
    };
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(from_datafusion);
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            return;
        }
    }
}

/// The reader's end of a running query.
pub(super) struct Reading {
    pub(super) receiver: mpsc::Receiver<SqlResult<RecordBatch>>,
    /// `None` once the stream has ended.
    pub(super) producer: Option<AbortOnDropHandle<()>>,
    pub(super) cancel: CancellationToken,
    pub(super) memory: Arc<QueryMemory>,
    /// As long as there is something to run.
    pub(super) lease: Option<Arc<Lease>>,
}

impl Reading {
    pub(super) async fn next(&mut self) -> Option<SqlResult<RecordBatch>> {
        let producer = self.producer.as_mut()?;
        let next = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Err(canceled())),
            batch = self.receiver.recv() => match batch {
                Some(batch) => Some(batch.map_err(|error| self.memory.explained(error))),
                // All batches are here, unless the producer died.
                None => producer.await.err().map(|error| Err(crashed(error))),
            },
        };
        if !matches!(next, Some(Ok(_))) {
            (self.producer, self.lease) = (None, None);
        }
        next
    }
}

/// `XX000`: an operator panicked.
pub(super) fn crashed(error: JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(panic) => SqlError::internal(format!("the query crashed: {}", panic_text(&*panic))),
        Err(_) => SqlError::new(Condition::AdminShutdown, "terminating the query: the server is shutting down"),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
