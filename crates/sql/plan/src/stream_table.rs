//! A leaf of plans whose rows are pushed from outside, once per run, as COPY FROM does.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::future::{BoxFuture, ready};
use futures::stream;
use parking_lot::Mutex;

/// Table whose rows come from streams that are supplied to each run.
#[derive(Debug)]
pub struct StreamTable {
    schema: SchemaRef,
}

impl StreamTable {
    /// Creates a table whose batches have this schema.
    #[must_use]
    pub fn new(schema: SchemaRef) -> Arc<Self> {
        Arc::new(Self { schema })
    }

    /// Returns a session state for planning one run, in which the table has the rows of `streams`.
    ///
    /// Each stream is one partition, which can be read once, in parallel with the others.
    #[must_use]
    pub fn with_streams(&self, state: &SessionState, streams: Vec<SendableRecordBatchStream>) -> SessionState {
        let fed = |stream| Arc::new(RunStream { schema: Arc::clone(&self.schema), stream: Mutex::new(Some(stream)) });
        let mut state = state.clone();
        state.config_mut().set_extension(Arc::new(RunStreams(streams.into_iter().map(fed).collect())));
        state
    }

    /// Plans an operator that reads the streams of the run; an empty one without streams, as for EXPLAIN of a COPY.
    fn plan_scan(&self, session: &dyn Session, projection: Option<&Vec<usize>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let streams = session.config().get_extension::<RunStreams>();
        let Some(streams) = streams.filter(|streams| !streams.0.is_empty()) else {
            let schema = match projection {
                Some(projection) => Arc::new(self.schema.project(projection)?),
                None => Arc::clone(&self.schema),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        };
        let partitions = streams.0.iter().map(|fed| Arc::clone(fed) as Arc<dyn PartitionStream>).collect();
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(StreamingTableExec::try_new(schema, partitions, projection, [], false, None)?))
    }
}

/// Streams of a run, an extension of the configuration that the run is planned with. No plan has two stream tables.
#[derive(Debug)]
pub struct RunStreams(Vec<Arc<RunStream>>);

impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    // Without `async`: the future of an `async fn` holds its arguments, and for each implementation the compiler would
    // spend seconds proving that expressions and plans are `Send`.
    fn scan<'a, 'b, 'c, 'd, 'e>(
        &'a self,
        session: &'b dyn Session,
        projection: Option<&'c Vec<usize>>,
        _filters: &'d [Expr],
        _limit: Option<usize>,
    ) -> BoxFuture<'e, DfResult<Arc<dyn ExecutionPlan>>>
    where
        'a: 'e,
        'b: 'e,
        'c: 'e,
        'd: 'e,
        Self: 'e,
    {
        Box::pin(ready(self.plan_scan(session, projection)))
    }
}

/// One stream of a run, until it is executed.
struct RunStream {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for RunStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunStream")
    }
}

impl PartitionStream for RunStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        self.stream.lock().take().unwrap_or_else(|| {
            let failure = stream::once(async { internal_err!("a partition of a COPY was read twice") });
            Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), failure))
        })
    }
}
