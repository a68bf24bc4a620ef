//! Exchange that sends rows to the tasks that own their buckets: if one join side is distributed by the join keys, only
//! the other side moves.
//!
//! The library partitions rows by hashes of columns. Each row therefore gets an extra column with a number whose hash
//! is known to lead to the right task: all rows of a bucket get the number of the task that owns the bucket.

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
use shards::{BUCKET_COUNT, compute_buckets};
use url::Url;

use crate::local_exchange::LocalExchangeExec;
use crate::task_assignment::{Cluster, assign_buckets};

#[cfg(test)]
mod tests;

/// Name of the extra column.
const TASK_COLUMN: &str = "task";

/// Assignment of buckets to tasks, for a stage with one task per worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketOwners {
    /// For each bucket, the number that is hashed to its owner's task.
    numbers: Arc<[i16]>,
    /// Partitions per task.
    partitions: usize,
}

impl BucketOwners {
    /// Returns the assignment for stages whose tasks have `partitions` partitions each; `None` if there are more tasks
    /// than numbers can address.
    pub(super) fn try_new(workers: &[Url], cluster: &dyn Cluster, partitions: usize) -> DfResult<Option<Self>> {
        let (readers, owners) = assign_buckets(workers, workers.len(), cluster);
        let Some(numbers) = task_numbers(readers.len(), partitions)? else { return Ok(None) };
        let numbers = owners.into_iter().map(|owner| numbers[owner]).collect();
        Ok(Some(Self { numbers, partitions }))
    }

    /// Returns the number of partitions per task.
    pub(super) fn partitions(&self) -> usize {
        self.partitions
    }

    /// Sends the rows of `plan` to the owners of their buckets by the columns `keys`; within a task they are
    /// partitioned by `among`.
    pub(super) fn route_to_owners(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        keys: Vec<usize>,
        among: Vec<Arc<dyn PhysicalExpr>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let (schema, partitions) = (plan.schema(), self.partitions);
        let led: Arc<dyn ExecutionPlan> = Arc::new(RouteToOwnersExec::try_new(plan, keys, Arc::clone(&self.numbers))?);
        let task: Arc<dyn PhysicalExpr> = Arc::new(Column::new(TASK_COLUMN, schema.fields().len()));
        let sent = Arc::new(RepartitionExec::try_new(led, Partitioning::Hash(vec![task], partitions))?);
        let column = |(at, field): (usize, &Arc<Field>)| {
            ProjectionExpr::new(Arc::new(Column::new(field.name(), at)), field.name())
        };
        let arrived = ProjectionExec::try_new(schema.fields().iter().enumerate().map(column), sent)?;
        Ok(Arc::new(LocalExchangeExec::try_new(Arc::new(arrived), among, partitions)?))
    }
}

/// Returns, for each task, a number whose hash the library maps to one of its partitions.
fn task_numbers(tasks: usize, partitions: usize) -> DfResult<Option<Vec<i16>>> {
    let all: ArrayRef = Arc::new(Int16Array::from_iter_values(0..=i16::MAX));
    let mut hashes = vec![0; all.len()];
    create_hashes([&all], REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
    let mut found: Vec<Option<i16>> = vec![None; tasks];
    let count = tasks * partitions;
    for (number, hash) in (0..=i16::MAX).zip(hashes) {
        let place = usize::try_from(hash % count as u64).expect("partition numbers are usize") / partitions;
        found[place].get_or_insert(number);
    }
    Ok(found.into_iter().collect())
}

/// Returns whether every exchange to bucket owners ends in a stage with a task on each of the `workers`.
pub(super) fn all_owners_have_tasks(plan: &Arc<dyn ExecutionPlan>, workers: usize) -> bool {
    all_owners_have_tasks_in(plan, 1, workers)
}

fn all_owners_have_tasks_in(plan: &Arc<dyn ExecutionPlan>, tasks: usize, workers: usize) -> bool {
    if let Some(exchange) = plan.as_network_boundary() {
        let stage = exchange.input_stage();
        let Some(input) = stage.local_plan() else { return false };
        let is_led = plan.is::<NetworkShuffleExec>() && input.children().iter().any(|it| it.is::<RouteToOwnersExec>());
        return (!is_led || tasks == workers) && all_owners_have_tasks_in(input, stage.task_count(), workers);
    }
    plan.children().into_iter().all(|input| all_owners_have_tasks_in(input, tasks, workers))
}

/// Appends to each row the number that routes it to the owner of its bucket.
#[derive(Debug)]
pub struct RouteToOwnersExec {
    input: Arc<dyn ExecutionPlan>,
    /// Positions of the columns that determine the bucket.
    keys: Vec<usize>,
    /// For each bucket, the number of its owner's task.
    numbers: Arc<[i16]>,
    properties: Arc<PlanProperties>,
}

impl RouteToOwnersExec {
    /// Returns the operator with a number for each bucket.
    ///
    /// # Errors
    /// If a key is not a column of the input, or there are not as many numbers as buckets.
    pub(super) fn try_new(input: Arc<dyn ExecutionPlan>, keys: Vec<usize>, numbers: Arc<[i16]>) -> DfResult<Self> {
        let schema = input.schema();
        if numbers.len() != BUCKET_COUNT || keys.is_empty() || keys.iter().any(|key| schema.fields().len() <= *key) {
            return internal_err!("bucket keys are columns of the input, with a number for each bucket");
        }
        let mut fields: Vec<Arc<Field>> = schema.fields().to_vec();
        fields.push(Arc::new(Field::new(TASK_COLUMN, DataType::Int16, false)));
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

    /// Returns the positions of the columns that determine the bucket.
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// Returns the number of each bucket.
    pub(super) fn numbers(&self) -> &[i16] {
        &self.numbers
    }
}

impl DisplayAs for RouteToOwnersExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToOwners")
    }
}

impl ExecutionPlan for RouteToOwnersExec {
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
        let Some(input) = children.pop() else { return internal_err!("bucket routing has one input") };
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
            let buckets = compute_buckets(&values).map_err(|error| DataFusionError::External(Box::new(error)))?;
            let tasks = Int16Array::from_iter_values(buckets.into_iter().map(|bucket| numbers[usize::from(bucket)]));
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(tasks));
            Ok(RecordBatch::try_new(Arc::clone(&schema), columns)?)
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows.map(numbered))))
    }
}
