//! Rows on their way to the tasks that own their buckets: where one side of a join lies in buckets of its keys, the other goes to it, and it stays.
//!
//! The library sends rows by hashes of columns. So each row gets a column more, the number that its task's hash is known of: all rows of a bucket have the
//! number of the task that owns it.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as DfResult, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::{REPARTITION_RANDOM_STATE, RepartitionExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion_distributed::{NetworkBoundaryExt, NetworkShuffleExec};
use futures::StreamExt;
use shards::{BUCKETS, buckets_of};
use url::Url;

use crate::assign::{Cluster, bucket_readers};
use crate::within::WithinTasksExec;

#[cfg(test)]
mod tests;

/// The column that says where a row goes.
const TASK: &str = "task";

/// Which task owns which bucket, in a stage with a task on each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owners {
    /// For each bucket what is hashed to go to its task.
    numbers: Arc<[i16]>,
    /// Of a task.
    partitions: usize,
}

impl Owners {
    /// Of stages whose tasks have so many partitions each. `None` where there are more tasks than hashes of numbers reach.
    pub(super) fn of(workers: &[Url], cluster: &dyn Cluster, partitions: usize) -> DfResult<Option<Self>> {
        let (readers, owners) = bucket_readers(workers, workers.len(), cluster);
        let Some(numbers) = numbers(readers.len(), partitions)? else { return Ok(None) };
        let numbers = owners.into_iter().map(|owner| numbers[owner]).collect();
        Ok(Some(Self { numbers, partitions }))
    }

    /// How many partitions rows come to in a task.
    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    /// The rows of `plan` in the tasks of their buckets by the columns `keys`, there among partitions by `among`.
    pub(super) fn lead(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        keys: Vec<usize>,
        among: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let (schema, partitions) = (plan.schema(), self.partitions);
        let led: Arc<dyn ExecutionPlan> = Arc::new(ToOwnersExec::try_new(plan, keys, Arc::clone(&self.numbers))?);
        let task: Arc<dyn PhysicalExpr> = Arc::new(Column::new(TASK, schema.fields().len()));
        let sent = Arc::new(RepartitionExec::try_new(led, Partitioning::Hash(vec![task], partitions))?);
        let column = |(at, field): (usize, &Arc<Field>)| {
            ProjectionExpr::new(Arc::new(Column::new(field.name(), at)), field.name())
        };
        let arrived = ProjectionExec::try_new(schema.fields().iter().enumerate().map(column), sent)?;
        Ok(Arc::new(WithinTasksExec::try_new(Arc::new(arrived), among, partitions)?))
    }
}

/// For each of so many tasks a number whose hash the library sends to one of its partitions.
fn numbers(tasks: usize, partitions: usize) -> DfResult<Option<Vec<i16>>> {
    let all: ArrayRef = Arc::new(Int16Array::from_iter_values(0..=i16::MAX));
    let mut hashes = vec![0; all.len()];
    create_hashes([&all], REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
    let mut found: Vec<Option<i16>> = vec![None; tasks];
    let count = tasks * partitions;
    for (number, hash) in (0..=i16::MAX).zip(hashes) {
        let place = usize::try_from(hash % count as u64).expect("less than a count") / partitions;
        found[place].get_or_insert(number);
    }
    Ok(found.into_iter().collect())
}

/// Whether all rows that go to the owners of their buckets come to stages with a task on each of so many workers.
pub(super) fn arrive(plan: &Arc<dyn ExecutionPlan>, workers: usize) -> bool {
    arrive_in(plan, 1, workers)
}

fn arrive_in(plan: &Arc<dyn ExecutionPlan>, tasks: usize, workers: usize) -> bool {
    if let Some(exchange) = plan.as_network_boundary() {
        let stage = exchange.input_stage();
        let Some(input) = stage.local_plan() else { return false };
        let is_led = plan.is::<NetworkShuffleExec>() && input.children().iter().any(|it| it.is::<ToOwnersExec>());
        return (!is_led || tasks == workers) && arrive_in(input, stage.task_count(), workers);
    }
    plan.children().into_iter().all(|input| arrive_in(input, tasks, workers))
}

/// Gives each row a number more, which says where it goes.
#[derive(Debug)]
pub struct ToOwnersExec {
    input: Arc<dyn ExecutionPlan>,
    /// The columns that have buckets.
    keys: Vec<usize>,
    numbers: Arc<[i16]>,
    properties: Arc<PlanProperties>,
}

impl ToOwnersExec {
    /// With a number for each bucket.
    ///
    /// # Errors
    /// Where they are no columns, or not as many numbers as buckets.
    pub(super) fn try_new(input: Arc<dyn ExecutionPlan>, keys: Vec<usize>, numbers: Arc<[i16]>) -> DfResult<Self> {
        let schema = input.schema();
        if numbers.len() != BUCKETS || keys.is_empty() || keys.iter().any(|key| schema.fields().len() <= *key) {
            return internal_err!("rows have buckets by their columns");
        }
        let mut fields: Vec<Arc<Field>> = schema.fields().to_vec();
        fields.push(Arc::new(Field::new(TASK, DataType::Int16, false)));
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let partitions = Partitioning::UnknownPartitioning(input.output_partitioning().partition_count());
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            partitions,
            input.properties().emission_type,
            input.properties().boundedness,
        );
        Ok(Self { input, keys, numbers, properties: Arc::new(properties) })
    }

    /// The columns that have buckets.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// The number of each bucket.
    pub(super) fn numbers(&self) -> &[i16] {
        &self.numbers
    }
}

impl DisplayAs for ToOwnersExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToOwners")
    }
}

impl ExecutionPlan for ToOwnersExec {
    fn name(&self) -> &'static str {
        "ToOwnersExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Some(input) = children.pop() else { return internal_err!("rows come from somewhere") };
        Ok(Arc::new(Self::try_new(input, self.keys.clone(), Arc::clone(&self.numbers))?))
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let (keys, numbers, schema) = (self.keys.clone(), Arc::clone(&self.numbers), self.schema());
        let rows = self.input.execute(partition, context)?;
        let numbered = move |batch: DfResult<RecordBatch>| {
            let batch = batch?;
            let values: Vec<ArrayRef> = keys.iter().map(|key| Arc::clone(batch.column(*key))).collect();
            let buckets = buckets_of(&values).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let tasks = Int16Array::from_iter_values(buckets.into_iter().map(|bucket| numbers[usize::from(bucket)]));
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(tasks));
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.map(numbered))))
    }
}
