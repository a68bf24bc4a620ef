//! Output of a fragment.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use engine::pipeline::OutputSink;
use engine::{Batch, arrow_convert};
use scheduler::block_outside_turn;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use crate::run_error::RunError;

/// Channel to the reader of a fragment. Workers hold it, and nothing else of the run, which holds the workers.
pub(super) struct Output {
    pub(super) schema: SchemaRef,
    pub(super) sender: mpsc::Sender<DfResult<RecordBatch>>,
}

impl Output {
    /// Sends batches to the reader.
    pub(super) async fn send(&self, batches: Vec<Batch>) -> Result<(), RunError> {
        for batch in batches {
            let batch = self.to_arrow(&batch)?;
            if self.sender.send(Ok(batch)).await.is_err() {
                return Err(engine::Error::Stopped.into());
            }
        }
        Ok(())
    }

    /// Returns a callback that outputs batches while a step is still producing them, where one batch becomes many. It
    /// blocks, so it needs a runtime with other threads for the reader.
    pub(super) fn flush_callback(self: &Arc<Self>) -> Option<Box<OutputSink>> {
        let runtime = Handle::current();
        let may_wait = matches!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        let output = Arc::clone(self);
        let relief: Box<OutputSink> = Box::new(move |batches| {
            let given = block_outside_turn(|| runtime.block_on(output.send(batches)));
            given.map_err(RunError::into_engine_error)
        });
        may_wait.then_some(relief)
    }

    fn to_arrow(&self, batch: &Batch) -> engine::Result<RecordBatch> {
        let columns = batch.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| arrow_convert::to_array(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<engine::Result<Vec<_>>>()?,
            &options,
        )?)
    }
}
