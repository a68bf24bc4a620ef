//! Output of a fragment.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::common::Result as DfResult;
use engine::pipeline::Relief;
use engine::{Batch, arrow_form};
use scheduler::outside;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use crate::ended::Ended;

/// Channel to the reader of a fragment. Workers hold it, and nothing else of the run, which holds the workers.
pub(super) struct Output {
    pub(super) schema: SchemaRef,
    pub(super) sender: mpsc::Sender<DfResult<RecordBatch>>,
}

impl Output {
    /// Sends batches to the reader.
    pub(super) async fn give(&self, batches: Vec<Batch>) -> Result<(), Ended> {
        for batch in batches {
            let batch = self.arrays(&batch)?;
            if self.sender.send(Ok(batch)).await.is_err() {
                return Err(engine::Error::Stopped.into());
            }
        }
        Ok(())
    }

    /// Returns a callback that outputs batches while a step is still producing them, where one batch becomes many. It
    /// blocks, so it needs a runtime with other threads for the reader.
    pub(super) fn relief(self: &Arc<Self>) -> Option<Box<Relief>> {
        let runtime = Handle::current();
        let may_wait = matches!(runtime.runtime_flavor(), RuntimeFlavor::MultiThread);
        let output = Arc::clone(self);
        let relief: Box<Relief> = Box::new(move |batches| {
            let given = outside(|| runtime.block_on(output.give(batches)));
            given.map_err(Ended::of_worker)
        });
        may_wait.then_some(relief)
    }

    fn arrays(&self, batch: &Batch) -> engine::Result<RecordBatch> {
        let columns = batch.columns.iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| arrow_form::array(column, field.data_type()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<engine::Result<Vec<_>>>()?,
            &options,
        )?)
    }
}
