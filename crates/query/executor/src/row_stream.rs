//! Streams of the rows of running queries.

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
use types::interrupt::canceled_error;
use types::{Condition, SqlError, SqlResult};

/// Batches buffered for a slow reader: with those that operators hold, this bounds the memory of a result of any size.
pub(super) const BATCHES_AHEAD: usize = 2;

/// Rows of a query, computed as they are read. Dropping the stream stops the query.
pub struct RowStream {
    pub columns: Vec<OutputColumn>,
    /// Batches of the result; the stream ends after its first error.
    pub stream: BoxStream<'static, SqlResult<RecordBatch>>,
}

/// Runs operators and sends their batches to `sender`.
pub(super) async fn run_operators(
    operators: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    sender: mpsc::Sender<SqlResult<RecordBatch>>,
) {
    // The worker counts the query as running while this context lives.
    let _session = Arc::clone(&task);
    let mut rows = match execute_stream(operators, task) {
        Ok(rows) => rows,
        Err(error) => {
            // If the reader is gone, nobody needs the error.
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

/// Reader's end of a running query.
pub(super) struct ResultReader {
    pub(super) receiver: mpsc::Receiver<SqlResult<RecordBatch>>,
    /// Task that runs the operators; `None` once the stream has ended.
    pub(super) producer: Option<AbortOnDropHandle<()>>,
    pub(super) cancel: CancellationToken,
    pub(super) memory: Arc<QueryMemory>,
    /// Lease of the worker, released when the stream ends.
    pub(super) lease: Option<Arc<Lease>>,
}

impl ResultReader {
    pub(super) async fn next(&mut self) -> Option<SqlResult<RecordBatch>> {
        let producer = self.producer.as_mut()?;
        let next = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Some(Err(canceled_error())),
            batch = self.receiver.recv() => match batch {
                Some(batch) => Some(batch.map_err(|error| self.memory.add_limit_hint(error))),
                // The channel is closed: all batches have been read, or the producer panicked.
                None => producer.await.err().map(|error| Err(task_error(error))),
            },
        };
        if !matches!(next, Some(Ok(_))) {
            (self.producer, self.lease) = (None, None);
        }
        next
    }
}

/// Returns the error of a query whose task ended early: `XX000` if an operator panicked, `57P01` at shutdown.
pub(super) fn task_error(error: JoinError) -> SqlError {
    match error.try_into_panic() {
        Ok(panic) => SqlError::internal(format!("query execution panicked: {}", panic_text(&*panic))),
        Err(_) => SqlError::new(Condition::AdminShutdown, "terminating the query: the server is shutting down"),
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}
