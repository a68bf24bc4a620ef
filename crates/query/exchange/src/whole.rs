//! A query that one worker runs as a whole: a small one, on the worker whose cache has most of what it reads.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, internal_err};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_distributed::{NetworkBoundary as _, NetworkCoalesceExec, Stage};
use scan::ShardScanExec;
use url::Url;
use uuid::Uuid;

use crate::assign::{Cluster, assign};

/// The worker that owns most parts of what a plan scans; `None` where nothing of it is stored.
pub(super) fn home(plan: &Arc<dyn ExecutionPlan>, workers: &[Url], cluster: &dyn Cluster) -> Option<Url> {
    let mut keys = Vec::new();
    let walked = plan.apply(|operator| {
        if let Some(scan) = operator.downcast_ref::<ShardScanExec>() {
            keys.extend(scan.part_keys().into_iter().flatten().map(Some));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("nothing fails on the way");
    if keys.is_empty() || workers.is_empty() {
        return None;
    }
    let owned = assign(&keys, workers, cluster);
    // Of equals the first.
    let most = (0..workers.len()).rev().max_by_key(|worker| owned[*worker].len())?;
    Some(workers[most].clone())
}

/// The rows of `operators` from the one task of a stage that is all of them, by a name that no other has. The library itself leaves stages of one task
/// for one reader where they are read.
pub(super) fn sent(operators: Arc<dyn ExecutionPlan>, name: Uuid) -> DfResult<Arc<dyn ExecutionPlan>> {
    // An append has the partitions of all its inputs, however few threads there are.
    let operators = match operators.output_partitioning().partition_count() {
        1 => operators,
        _ => Arc::new(CoalescePartitionsExec::new(operators)),
    };
    let exchange = NetworkCoalesceExec::try_new(operators, 1, 1)?;
    let Stage::Local(stage) = exchange.input_stage() else { return internal_err!("a stage is sent once") };
    let mut stage = stage.clone();
    (stage.query_id, stage.num) = (name, 1);
    let exchange: Arc<dyn ExecutionPlan> = exchange.with_input_stage(Stage::Local(stage))?;
    Ok(exchange)
}
