//! Tests for the pool of connections to workers.

use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_distributed::TaskKey;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, DuplexStream};

use super::*;
use crate::error_transport::lost_worker;

/// Dialer that retains the other ends of its streams, and refuses to open any once it has `None`.
#[derive(Debug, Default)]
struct Ends(Mutex<Option<Vec<DuplexStream>>>);

#[async_trait]
impl Dialer for Ends {
    async fn dial(&self, _: &Url) -> io::Result<Box<dyn ByteStream>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let mut ends = self.0.lock();
        ends.as_mut().ok_or(io::ErrorKind::ConnectionRefused)?.push(theirs);
        Ok(Box::new(ours))
    }
}

async fn ask(channels: &Channels, worker: &Url) -> DfResult<String> {
    let mut client = channels.get_worker_client_for_url(worker).await?;
    client.get_worker_info(GetWorkerInfoRequest {}).await.map(|info| info.version)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_forgotten_when_it_ends_or_cannot_be_opened() {
    let ends = Arc::new(Ends(Mutex::new(Some(Vec::new()))));
    let channels = Channels::new(Arc::clone(&ends) as Arc<dyn Dialer>);
    let worker = Url::parse("http://127.0.0.1:1/a").expect("it is an address");
    let other = Url::parse("http://127.0.0.1:1/b").expect("it is an address");
    let asking = tokio::spawn({
        let (channels, worker) = (channels.clone(), worker.clone());
        async move { ask(&channels, &worker).await }
    });
    // The HTTP/2 preface has arrived: the channel is connected.
    let mut end = loop {
        if let Some(end) = ends.0.lock().as_mut().and_then(Vec::pop) {
            break end;
        }
        tokio::task::yield_now().await;
    };
    end.read_exact(&mut [0; 24]).await.expect("it speaks");
    assert_eq!(channels.pool.count(), 1);
    // The client may reconnect.
    *ends.0.lock() = None;
    drop(end);
    asking.await.expect("it does not panic").expect_err("the worker is gone");
    while channels.pool.count() != 0 {
        // A background task notices the end.
        tokio::task::yield_now().await;
    }
    for worker in [&worker, &other] {
        let error = ask(&channels, worker).await.expect_err("nobody is there");
        assert!(error.to_string().contains("cannot be reached"), "{error}");
    }
    assert_eq!(channels.pool.count(), 0);
}

/// Worker channel that fails: the plan does not arrive, or the connection breaks afterwards.
struct Breaks {
    before: bool,
}

#[async_trait]
impl WorkerChannel for Breaks {
    async fn coordinator_channel(
        &mut self,
        _: tonic::codegen::http::HeaderMap,
        _: SetPlanRequest,
        _: BoxStream<'static, CoordinatorToWorkerMsg>,
        _: ExecutionPlanMetricsSet,
        _: &Arc<TaskContext>,
    ) -> DfResult<BoxStream<'static, DfResult<WorkerToCoordinatorMsg>>> {
        let broken = || DataFusionError::External(Box::new(tonic::Status::unavailable("broken")));
        if self.before {
            return Err(broken());
        }
        Ok(stream::iter([Ok(WorkerToCoordinatorMsg::LoadInfoEos), Err(broken())]).boxed())
    }

    async fn execute_task(
        &mut self,
        _: tonic::codegen::http::HeaderMap,
        _: ExecuteTaskRequest,
        _: ExecutionPlanMetricsSet,
        _: &Arc<TaskContext>,
    ) -> DfResult<Vec<BoxStream<'static, DfResult<RecordBatch>>>> {
        unreachable!("nobody asks for rows")
    }

    async fn get_worker_info(&mut self, _: GetWorkerInfoRequest) -> DfResult<GetWorkerInfoResponse> {
        unreachable!("nobody asks")
    }
}

#[tokio::test]
async fn a_task_that_nobody_reads_may_be_lost_unless_it_has_to_tell_what_it_did() {
    let worker = Url::parse("http://127.0.0.1:1/a").expect("it is an address");
    for before in [true, false] {
        for has_to_tell in [false, true] {
            let mut config = SessionConfig::new();
            if has_to_tell {
                config.set_extension(Arc::new(ReportsRequested));
            }
            let context = SessionContext::new_with_config(config).task_ctx();
            let request = SetPlanRequest {
                task_key: TaskKey { query_id: uuid::Uuid::nil(), stage_id: 1, task_number: 0 },
                task_count: 1,
                plan: MaybeEncoded::Encoded(Vec::new()),
                work_unit_feed_declarations: Vec::new(),
                target_worker_url: worker.clone(),
                query_start_time_ns: 0,
            };
            let mut channel = WorkerClient { library: Box::new(Breaks { before }), worker: worker.clone() };
            let (headers, metrics) = (tonic::codegen::http::HeaderMap::new(), ExecutionPlanMetricsSet::new());
            let opened =
                channel.coordinator_channel(headers, request, stream::empty().boxed(), metrics, &context).await;
            let errors: Vec<DataFusionError> = match opened {
                Ok(answers) => answers.filter_map(|answer| std::future::ready(answer.err())).collect().await,
                Err(error) => vec![error],
            };
            assert_eq!(errors.len(), usize::from(has_to_tell), "{errors:?}");
            for error in errors {
                assert_eq!(lost_worker(&functions::error::from_datafusion(error)), Some(worker.clone()));
            }
        }
    }
}
