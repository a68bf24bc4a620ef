//! Runs a small query as a single task, on the worker whose cache owns most of what it reads.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{NetworkBoundary as _, NetworkCoalesceExec, Stage};
use scan::ShardScanExec;
use url::Url;
use uuid::Uuid;

use crate::task_assignment::{Cluster, assign_parts};

/// Returns the worker that owns most parts of what a plan scans; `None` if the plan scans no stored parts.
pub(super) fn preferred_worker(plan: &Arc<dyn ExecutionPlan>, workers: &[Url], cluster: &dyn Cluster) -> Option<Url> {
    let mut keys = Vec::new();
    let walked = plan.apply(|operator| {
        if let Some(scan) = operator.downcast_ref::<ShardScanExec>() {
            keys.extend(scan.part_locations().into_iter().flatten().map(Some));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor of a plan's scans returns no error");
    if keys.is_empty() || workers.is_empty() {
        return None;
    }
    let owned = assign_parts(&keys, workers, cluster);
    // On a tie, the first worker.
    let most = (0..workers.len()).rev().max_by_key(|worker| owned[*worker].len())?;
    Some(workers[most].clone())
}

/// Wraps `operators` as a stage with one task, under a unique query id `name`. The library itself would run a single
/// task for a single reader in the reader's process.
pub(super) fn single_task_exchange(operators: Arc<dyn ExecutionPlan>, name: Uuid) -> DfResult<Arc<dyn ExecutionPlan>> {
    // A union has the partitions of all its inputs, however few threads there are.
    let operators = match operators.output_partitioning().partition_count() {
        1 => operators,
        _ => Arc::new(CoalescePartitionsExec::new(operators)),
    };
    let exchange = NetworkCoalesceExec::try_new(operators, 1, 1)?;
    let Stage::Local(stage) = exchange.input_stage() else { return internal_err!("a new exchange has a remote input") };
    let mut stage = stage.clone();
    (stage.query_id, stage.num) = (name, 1);
    let exchange: Arc<dyn ExecutionPlan> = exchange.with_input_stage(Stage::Local(stage))?;
    Ok(exchange)
}
