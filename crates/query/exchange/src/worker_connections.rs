//! Connections to workers: callers provide the byte streams, the library the protocol over them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    MaybeEncoded, SetPlanRequest, Worker, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tonic::metadata::MetadataMap;
use tonic::transport::{Endpoint, Server};
use tower::service_fn;
use url::Url;

use crate::codec::SealedPlan;
use crate::connection_pool::{ChannelPool, Connection};
use crate::error_transport::{decode_error, is_lost};
use crate::task_reports::{ReportsRequested, TaskReports};

#[cfg(test)]
mod tests;

/// Idle time after which a worker is pinged.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Time to wait for the answer to a ping; the worker is then considered lost.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Flow-control window of one stream in bytes: sent or not yet read.
const STREAM_WINDOW: u32 = 4 << 20;
/// Maximum bytes of an HTTP/2 frame: the default of 16 KB cuts a batch of rows into dozens.
const FRAME: u32 = 1 << 20;
/// Flow-control window of a connection, as large as allowed: a stream that nobody reads, such as that of an open
/// cursor, must not block the others.
const CONNECTION_WINDOW: u32 = i32::MAX as u32;

/// Byte stream between two processes, of whatever transport.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> ByteStream for S {}

/// Opens connections to workers.
#[async_trait]
pub trait Dialer: Send + Sync + fmt::Debug {
    /// Opens a connection to the worker at this address, with both ends authenticated.
    ///
    /// # Errors
    /// If the connection cannot be opened.
    async fn dial(&self, worker: &Url) -> io::Result<Box<dyn ByteStream>>;
}

/// Pool of a process's connections to workers. Each is opened on first use and dropped when it ends.
#[derive(Clone)]
pub struct Channels {
    dial: Arc<dyn Dialer>,
    pool: Arc<ChannelPool>,
    /// Runtime on which connections live. Query threads, which use them, are busy and come and go.
    runtime: Handle,
}

impl Channels {
    /// Returns an empty pool; `dial` opens connections on the caller's runtime.
    #[must_use]
    pub fn new(dial: Arc<dyn Dialer>) -> Self {
        Self { dial, pool: Arc::default(), runtime: Handle::current() }
    }

    /// Returns the channel to a worker, opening it if there is none.
    fn channel(&self, worker: &Url) -> DfResult<BoxCloneSyncChannel> {
        self.pool.get_or_open(worker, |lasting| {
            let _there = self.runtime.enter();
            let endpoint = Endpoint::from_shared(worker.to_string())
                .map_err(|error| decode_error(DataFusionError::External(Box::new(error)), worker))?
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEPALIVE_INTERVAL)
                .keep_alive_timeout(KEEPALIVE_TIMEOUT)
                // An idle connection is also closed when its worker is gone.
                .keep_alive_while_idle(true)
                .max_frame_size(FRAME)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW);
            let (dial, address) = (Arc::clone(&self.dial), worker.clone());
            // A client that still holds a broken channel reconnects through it.
            let channel = endpoint.connect_with_connector_lazy(service_fn(move |_| {
                let (dial, address, lasting) = (Arc::clone(&dial), address.clone(), Arc::clone(&lasting));
                async move {
                    let dialled = dial.dial(&address).await.inspect_err(|_| lasting.unregister())?;
                    Ok::<_, io::Error>(TokioIo::new(Connection::dialled(dialled, lasting)))
                }
            }));
            Ok(BoxCloneSyncChannel::new(channel))
        })
    }
}

impl fmt::Debug for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channels").field("dial", &self.dial).finish_non_exhaustive()
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, worker: &Url) -> DfResult<Box<dyn WorkerChannel>> {
        let library = create_worker_client(self.channel(worker)?);
        Ok(Box::new(WorkerClient { library, worker: worker.clone() }))
    }
}

/// Client of one worker: seals plans, restores errors to their original form and stores the metrics of tasks.
struct WorkerClient {
    library: Box<dyn WorkerChannel>,
    worker: Url,
}

#[async_trait]
impl WorkerChannel for WorkerClient {
    async fn coordinator_channel(
        &mut self,
        headers: tonic::codegen::http::HeaderMap,
        request: SetPlanRequest,
        messages: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> DfResult<BoxStream<'static, DfResult<WorkerToCoordinatorMsg>>> {
        let plan = match request.plan {
            MaybeEncoded::Decoded(plan) => MaybeEncoded::Decoded(Arc::new(SealedPlan(plan)) as _),
            encoded @ MaybeEncoded::Encoded(_) => encoded,
        };
        let request = SetPlanRequest { plan, ..request };
        let (worker, task) = (self.worker.clone(), request.task_key);
        let reports = context.session_config().get_extension::<TaskReports>();
        // If no metrics are needed, a task may be lost once nobody wants its rows: readers of its rows get the error
        // from the row stream.
        let may_be_lost = context.session_config().get_extension::<ReportsRequested>().is_none();
        let answers = self.library.coordinator_channel(headers, request, messages, metrics, context).await;
        let answers = match answers.map_err(|error| decode_error(error, &worker)) {
            Err(error) if may_be_lost && is_lost(&error) => return Ok(stream::empty().boxed()),
            answers => answers?,
        };
        let answers = answers.map(move |answer| {
            if let (Ok(WorkerToCoordinatorMsg::TaskMetrics(told)), Some(reports)) = (&answer, &reports) {
                reports.record(task, &worker, told);
            }
            answer.map_err(|error| decode_error(error, &worker))
        });
        let is_wanted = move |answer: &DfResult<WorkerToCoordinatorMsg>| {
            let is_lost = answer.as_ref().is_err_and(|error| may_be_lost && is_lost(error));
            std::future::ready(!is_lost)
        };
        Ok(answers.take_while(is_wanted).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: tonic::codegen::http::HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        context: &Arc<TaskContext>,
    ) -> DfResult<Vec<BoxStream<'static, DfResult<RecordBatch>>>> {
        let streams = self.library.execute_task(headers, request, metrics, context).await;
        let streams = streams.map_err(|error| decode_error(error, &self.worker))?;
        let streams = streams.into_iter().map(|rows| {
            let worker = self.worker.clone();
            rows.map(move |batch| batch.map_err(|error| decode_error(error, &worker))).boxed()
        });
        Ok(streams.collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> DfResult<GetWorkerInfoResponse> {
        self.library.get_worker_info(request).await.map_err(|error| decode_error(error, &self.worker))
    }
}

/// Converts the headers of a request to gRPC metadata.
pub(super) fn metadata(headers: tonic::codegen::http::HeaderMap) -> MetadataMap {
    MetadataMap::from_headers(headers)
}

/// Serves tasks on incoming connections until `incoming` ends.
///
/// # Errors
/// Errors of HTTP/2.
pub(super) async fn serve(
    worker: Worker,
    incoming: impl Stream<Item = io::Result<Box<dyn ByteStream>>> + Send,
) -> Result<(), tonic::transport::Error> {
    let incoming = incoming.map(|stream| stream.map(Connection::accepted));
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_INTERVAL))
        .http2_keepalive_timeout(Some(KEEPALIVE_TIMEOUT))
        .http2_adaptive_window(Some(true))
        .add_service(worker.into_worker_server())
        .serve_with_incoming(incoming)
        .await
}
