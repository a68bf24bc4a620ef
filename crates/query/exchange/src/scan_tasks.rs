//! Answers the library's questions about scans: number of tasks, what each task reads, and the worker each task runs
//! on.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result as DfResult, exec_datafusion_err};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedExt, DistributedLeafExec, RouteTasksEvent,
    RouteTasksEventResponse, ScaleUpLeafNodeEvent, ScaleUpLeafNodeEventResponse,
};
use functions::error::to_datafusion;
use scan::{RowDistribution, ShardScanExec};
use url::Url;

use crate::error_transport::worker_lost_error;
use crate::task_assignment::{Cluster, assign_buckets, assign_parts, assign_tasks, choose_readers, owner_count};

/// Registers handlers that answer from `cluster`, with the workers of one query.
pub(super) fn register_handlers(config: &mut SessionConfig, cluster: &Arc<dyn Cluster>, workers: &Arc<[Url]>) {
    let (asked, known) = (Arc::clone(cluster), Arc::clone(workers));
    config.set_distributed_desired_task_count_handler(move |event: DesiredTaskCountEvent<'_>| {
        desired_task_count(event.plan, &known, asked.as_ref()).map(Ok)
    });
    let (asked, known) = (Arc::clone(cluster), Arc::clone(workers));
    config.set_distributed_scale_up_leaf_node_handler(move |event: ScaleUpLeafNodeEvent<'_>| {
        let scan = event.plan.downcast_ref::<ShardScanExec>()?;
        Some(divide_scan(event.plan, scan, event.task_count, &known, asked.as_ref()))
    });
    let (asked, known) = (Arc::clone(cluster), Arc::clone(workers));
    config.set_distributed_route_tasks_handler(move |event: RouteTasksEvent<'_>| {
        route_tasks(event.plan, event.task_count, &known, asked.as_ref())
    });
}

/// Returns as many tasks as workers own parts of a scan.
fn desired_task_count(
    plan: &Arc<dyn ExecutionPlan>,
    workers: &[Url],
    cluster: &dyn Cluster,
) -> Option<DesiredTaskCountEventResponse> {
    let scan = plan.downcast_ref::<ShardScanExec>()?;
    if scan.is_replicated() {
        // The other scans of the stage decide where the task runs.
        return Some(DesiredTaskCountEventResponse::desired(1));
    }
    // Operators above a single partition may rely on it having all rows.
    if plan.output_partitioning().partition_count() == 1 {
        return Some(DesiredTaskCountEventResponse::maximum(1));
    }
    let desired = match scan.row_distribution() {
        RowDistribution::ByBucket(_) => workers.len(),
        _ => owner_count(&scan.part_locations(), workers, cluster),
    };
    Some(DesiredTaskCountEventResponse::desired(desired))
}

/// Divides a scan into one variant per task; some may have nothing to read.
fn divide_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: &ShardScanExec,
    tasks: usize,
    workers: &[Url],
    cluster: &dyn Cluster,
) -> DfResult<ScaleUpLeafNodeEventResponse> {
    if let RowDistribution::ByBucket(by) = scan.row_distribution()
        && tasks <= workers.len()
    {
        let (readers, owners) = assign_buckets(workers, tasks, cluster);
        return scan_variants(plan, scan.divide_by_bucket(&by, &owners, &readers)?);
    }
    let keys = scan.part_locations();
    let readers = choose_readers(&keys, workers, tasks, cluster);
    if readers.len() < tasks {
        return Err(exec_datafusion_err!("a scan has {tasks} tasks but only {} workers", readers.len()));
    }
    let assigned = match scan.is_replicated() {
        true => vec![(0..keys.len()).collect::<Vec<_>>(); tasks],
        false => assign_parts(&keys, &readers, cluster),
    };
    let variants = assigned.iter().zip(&readers).map(|(numbers, home)| scan.restrict_to_parts(numbers, home.as_str()));
    scan_variants(plan, variants.collect())
}

/// Wraps the variants of a scan for the library.
fn scan_variants(
    plan: &Arc<dyn ExecutionPlan>,
    variants: Vec<ShardScanExec>,
) -> DfResult<ScaleUpLeafNodeEventResponse> {
    let variants = variants.into_iter().map(|variant| -> Arc<dyn ExecutionPlan> { Arc::new(variant) });
    let leaf = DistributedLeafExec::try_new(Arc::clone(plan), variants)?;
    Ok(ScaleUpLeafNodeEventResponse::new(Arc::new(leaf)))
}

/// Assigns tasks to the preferred workers of the largest scan in the stage. A single task without a scan is left to the
/// library, which runs it near its input.
fn route_tasks(
    plan: &Arc<dyn ExecutionPlan>,
    tasks: usize,
    workers: &[Url],
    cluster: &dyn Cluster,
) -> Option<DfResult<RouteTasksEventResponse>> {
    let homes = preferred_workers(plan, tasks);
    if homes.is_none() && tasks == 1 {
        return None;
    }
    let wanted = homes.unwrap_or_else(|| workers.iter().take(tasks).cloned().map(Some).collect());
    let ready = cluster.workers();
    let gone = || {
        let gone = workers.iter().find(|worker| !ready.contains(worker)).unwrap_or(&workers[0]);
        to_datafusion(worker_lost_error(gone, "it is not in the cluster any more"))
    };
    Some(assign_tasks(&wanted, &ready).map(RouteTasksEventResponse::new).ok_or_else(gone))
}

/// Returns the preferred workers of the variants of the largest scan in a stage; `None` without a scan.
fn preferred_workers(plan: &Arc<dyn ExecutionPlan>, tasks: usize) -> Option<Vec<Option<Url>>> {
    let mut largest: Option<(usize, Vec<Option<Url>>)> = None;
    let walked = plan.apply(|node| {
        let Some(leaf) = node.downcast_ref::<DistributedLeafExec>().filter(|leaf| leaf.variants().len() == tasks)
        else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let scans: Vec<_> = leaf.variants().iter().filter_map(|it| it.downcast_ref::<ShardScanExec>()).collect();
        let parts = scans.iter().map(|scan| scan.part_count()).sum();
        if scans.len() == tasks && largest.as_ref().is_none_or(|(most, _)| *most < parts) {
            largest = Some((parts, scans.iter().map(|scan| Url::parse(scan.reader_process()?).ok()).collect()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.expect("the visitor of a stage's scans returns no error");
    largest.map(|(_, homes)| homes)
}
