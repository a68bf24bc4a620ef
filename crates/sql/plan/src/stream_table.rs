//! The leaf of a plan whose rows are pushed from outside, once: what COPY FROM feeds.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::stream;
use parking_lot::Mutex;

/// A table that is read once, from the streams that someone has put in: one partition each.
pub struct StreamTable {
    schema: SchemaRef,
    partitions: Mutex<Vec<Arc<Fed>>>,
}

impl StreamTable {
    /// A table of batches with this schema.
    #[must_use]
    pub fn new(schema: SchemaRef) -> Arc<Self> {
        Arc::new(Self { schema, partitions: Mutex::default() })
    }

    /// Gives the rows, before the plan is turned into operators. Each stream is one partition, read in parallel with the others.
    pub fn feed(&self, streams: Vec<SendableRecordBatchStream>) {
        let fed = |stream| Arc::new(Fed { schema: Arc::clone(&self.schema), stream: Mutex::new(Some(stream)) });
        *self.partitions.lock() = streams.into_iter().map(fed).collect();
    }
}

impl fmt::Debug for StreamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTable").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let partitions: Vec<Arc<dyn PartitionStream>> =
            self.partitions.lock().iter().map(|fed| Arc::clone(fed) as Arc<dyn PartitionStream>).collect();
        if partitions.is_empty() {
            // EXPLAIN of a COPY: nobody feeds it.
            let schema = match projection {
                Some(projection) => Arc::new(self.schema.project(projection)?),
                None => Arc::clone(&self.schema),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(StreamingTableExec::try_new(schema, partitions, projection, [], false, None)?))
    }
}

/// One stream, until it is taken.
struct Fed {
    schema: SchemaRef,
    stream: Mutex<Option<SendableRecordBatchStream>>,
}

impl fmt::Debug for Fed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fed")
    }
}

impl PartitionStream for Fed {
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
