//! Workers within this process that communicate over byte streams only.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use binder::StatementPlan;
use exchange::{
    ByteStream, Channels, Cluster, Dialer, DistributionContext, ExchangeConfig, JoinDistribution, LocalReason,
    RunLocation, Worker,
};
use executor::RunContext;
use futures::TryStreamExt;
use parking_lot::Mutex;
use scan::PartLocation;
use scheduler::ResourceConfig;
use shards::BUCKET_COUNT;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use types::random::SeededRandom;
use types::{Clock, SqlResult, SystemClock};
use url::Url;

use crate::fixtures::context;
use crate::sql_fixture::{Sql, texts};

/// Storage of a test and the workers of a cluster over it.
pub(super) struct Workers {
    pub(super) distribution: DistributionContext,
    pub(super) workers: Vec<Worker>,
    streams: Arc<Streams>,
    _spill: tempfile::TempDir,
}

type Accepting = mpsc::UnboundedSender<io::Result<Box<dyn ByteStream>>>;

/// In-memory streams by the address of the accepting worker.
#[derive(Debug, Default)]
struct Streams(Mutex<HashMap<Url, Accepting>>);

#[async_trait]
impl Dialer for Streams {
    async fn dial(&self, worker: &Url) -> io::Result<Box<dyn ByteStream>> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let open = self.0.lock().get(worker).cloned();
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        open.ok_or_else(refused)?.send(Ok(Box::new(theirs))).map_err(|_| refused())?;
        Ok(Box::new(ours))
    }
}

/// Cluster that assigns the parts of a scan to workers in turn.
#[derive(Debug)]
struct RoundRobinCluster(Vec<Url>);

impl Cluster for RoundRobinCluster {
    fn report_unreachable(&self, _: &Url) {}

    fn workers(&self) -> Vec<Url> {
        self.0.clone()
    }

    fn part_owners(&self, parts: &[PartLocation], among: &[Url]) -> Vec<usize> {
        (0..parts.len()).map(|number| number % among.len()).collect()
    }

    fn bucket_owners(&self, among: &[Url]) -> Vec<usize> {
        (0..BUCKET_COUNT).map(|bucket| bucket % among.len()).collect()
    }
}

impl Workers {
    /// Starts `count` workers over the storage of `sql`.
    pub(super) fn start(sql: &Sql, count: usize) -> Self {
        let spill = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let streams = Arc::new(Streams::default());
        let addresses: Vec<Url> =
            (0..count).map(|number| Url::parse(&format!("http://worker-{number}:1/")).unwrap()).collect();
        let start = |address: &Url| {
            let folder = spill.path().join(address.host_str().unwrap());
            let config = ResourceConfig { threads: 2, spill_folder: folder, ..ResourceConfig::default() };
            let channels = Channels::new(Arc::clone(&streams) as _);
            let worker = Worker::start(sql.warehouse.objects.clone(), &clock, &config, channels, "1").unwrap();
            let (accepting, incoming) = mpsc::unbounded_channel();
            streams.0.lock().insert(address.clone(), accepting);
            let serving = worker.clone();
            tokio::spawn(async move { serving.serve(UnboundedReceiverStream::new(incoming)).await });
            worker
        };
        let workers = addresses.iter().map(start).collect();
        let distribution = DistributionContext {
            cluster: Arc::new(RoundRobinCluster(addresses)),
            channels: Channels::new(Arc::clone(&streams) as _),
            exchange: ExchangeConfig {
                joins: JoinDistribution::ByCost,
                partitions: 2,
                single_task_bytes_max: 0,
                semi_join_rows_min: 0.0,
            },
            random: Arc::new(SeededRandom::new(count as u64)),
        };
        Self { distribution, workers, streams, _spill: spill }
    }

    /// Returns the distribution with another threshold for queries that run as a single task.
    pub(super) fn with_small_bytes(&self, small_bytes: u64) -> DistributionContext {
        let exchange = ExchangeConfig { single_task_bytes_max: small_bytes, ..self.distribution.exchange };
        DistributionContext { exchange, ..self.distribution.clone() }
    }

    /// Cuts off a worker that the cluster still lists.
    pub(super) fn cut_off(&self, number: usize) {
        let address = &self.distribution.cluster.workers()[number];
        self.streams.0.lock().remove(address).expect("it was there");
    }

    /// Returns the distribution with another join strategy.
    pub(super) fn with_joins(&self, joins: JoinDistribution) -> DistributionContext {
        let exchange = ExchangeConfig { joins, ..self.distribution.exchange };
        DistributionContext { exchange, ..self.distribution.clone() }
    }
}

/// Runs a query on workers. Returns its rows as sorted text, and where it ran.
pub(super) async fn on_workers(
    sql: &Sql,
    query: &str,
    distribution: &DistributionContext,
) -> SqlResult<(Vec<String>, RunLocation)> {
    let context = run_context(sql, distribution);
    let StatementPlan::Query(plan) = sql.plan(query)? else { panic!("{query} is no query") };
    let (rows, spread) = sql.warehouse.execution.executor().start_query_located(&plan, &context).await?;
    let batches: Vec<_> = rows.stream.try_collect().await?;
    let spread = spread.expect("there is a distribution");
    Ok((sorted(batches.iter().flat_map(texts).collect()), spread))
}

/// Returns the context of a statement on a cluster.
pub(super) fn run_context(sql: &Sql, distribution: &DistributionContext) -> RunContext {
    let distribution = Some(Arc::new(distribution.clone()));
    RunContext { settings: Arc::new(sql.settings.clone()), distribution, ..context() }
}

/// Returns the rows of a query in one process, as sorted text.
pub(super) async fn in_one_process(sql: &Sql, query: &str) -> Vec<String> {
    sorted(sql.run(query).await.unwrap_or_else(|error| panic!("{query}: {error}")))
}

/// Runs a query, which has to be distributed, and compares its rows with those of one process.
pub(super) async fn check(sql: &Sql, query: &str, distribution: &DistributionContext) -> Vec<String> {
    let expected = in_one_process(sql, query).await;
    let (rows, spread) =
        on_workers(sql, query, distribution).await.unwrap_or_else(|error| panic!("{query}: {error:?}"));
    assert!(matches!(spread, RunLocation::Workers(_)), "{query}: {spread:?}");
    assert_eq!(rows, expected, "{query}");
    rows
}

/// Returns why a query ran in the instance, after comparing its rows.
pub(super) async fn refusal(sql: &Sql, query: &str, distribution: &DistributionContext) -> LocalReason {
    let expected = in_one_process(sql, query).await;
    let (rows, spread) = on_workers(sql, query, distribution).await.unwrap();
    assert_eq!(rows, expected, "{query}");
    match spread {
        RunLocation::Instance(reason) => reason,
        ran => panic!("{query} ran {ran}"),
    }
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}
