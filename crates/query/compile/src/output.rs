//! What a program gives to whoever reads it.

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

/// The way out of a program. Workers hold it, and nothing of the run beside it, which holds workers.
pub(super) struct Output {
    pub(super) schema: SchemaRef,
    pub(super) sender: mpsc::Sender<DfResult<RecordBatch>>,
}

impl Output {
    pub(super) async fn give(&self, batches: Vec<Batch>) -> Result<(), Ended> {
        for batch in batches {
            let batch = self.arrays(&batch)?;
            if self.sender.send(Ok(batch)).await.is_err() {
                return Err(engine::Error::Stopped.into());
            }
        }
        Ok(())
    }

    /// Gives where one batch becomes many, before its end; that needs other threads for whoever reads them.
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
