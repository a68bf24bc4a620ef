//! Operator of a table scan.

use std::fmt;
use std::sync::Arc;

use catalog::Distribution;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result as DfResult, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use shards::{Predicate, ShardReader};

use crate::page_reader::PageRun;
use crate::partition_scan::{PartitionScan, counter};
use crate::scan::Scan;
use crate::scan_parts::{Part, Parts, ScanRuns};

/// Operator that reads the shards and unflushed rows of a table. Its partitions take parts from one queue, so that none
/// waits for another.
#[derive(Debug)]
pub struct ShardScanExec {
    pub scan: Arc<Scan>,
    pub(super) parts: Parts,
    limit: Option<usize>,
    /// Dynamic filters of joins and top-k above, which become stricter while the query runs. They prune; the operators
    /// above test them again.
    dynamic_filters: Vec<Arc<dyn PhysicalExpr>>,
    properties: Arc<PlanProperties>,
    runs: ScanRuns,
    /// Address of the process that reads it, if it is one share of a distributed scan.
    reader_process: Option<Arc<str>>,
    /// True if each process reads the entire scan.
    is_replicated: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl ShardScanExec {
    pub(super) fn new(scan: Arc<Scan>, parts: Parts, partitions: usize, limit: Option<usize>) -> Self {
        let schema = ShardReader::schema(&scan.columns);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let properties = Arc::new(properties.with_scheduling_type(SchedulingType::Cooperative));
        let dynamic = Vec::new();
        Self::assemble(scan, parts, limit, dynamic, properties)
    }

    fn assemble(
        scan: Arc<Scan>,
        parts: Parts,
        limit: Option<usize>,
        dynamic: Vec<Arc<dyn PhysicalExpr>>,
        properties: Arc<PlanProperties>,
    ) -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        let pruned = scan.shard_count - scan.shards.len();
        MetricBuilder::new(&metrics).global_counter(counter::SHARDS_PRUNED).add(pruned);
        Self {
            scan,
            parts,
            limit,
            dynamic_filters: dynamic,
            properties,
            runs: ScanRuns::default(),
            reader_process: None,
            is_replicated: false,
            metrics,
        }
    }

    /// Returns a copy that has not run, with this limit and these dynamic filters.
    fn new_run(&self, limit: Option<usize>, dynamic: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        let (scan, properties) = (Arc::clone(&self.scan), Arc::clone(&self.properties));
        let (reader_process, by_all) = (self.reader_process.clone(), self.is_replicated);
        Self {
            reader_process,
            is_replicated: by_all,
            ..Self::assemble(scan, self.parts.clone(), limit, dynamic, properties)
        }
    }

    /// Sets the dynamic filters.
    pub(super) fn with_dynamic_filters(self, dynamic: Vec<Arc<dyn PhysicalExpr>>) -> Self {
        Self { dynamic_filters: dynamic, ..self }
    }

    /// Sets the process that reads the scan.
    pub(super) fn with_reader_process(self, process: &str) -> Self {
        Self { reader_process: Some(process.into()), ..self }
    }

    /// Returns a copy that each process with a part of the plan reads entirely.
    pub fn replicated_copy(&self) -> Self {
        Self { is_replicated: true, ..self.new_run(self.limit, self.dynamic_filters.clone()) }
    }

    /// Returns a copy with one partition per worker thread: a worker's share of a small scan may be joined with its
    /// share of a large one.
    pub fn with_worker_partitions(&self, threads: usize) -> Self {
        let is_shared = self.scan.table.distribution == Distribution::Random;
        let parts = self.cut_parts(threads);
        let partitions = if is_shared { threads.clamp(1, parts.len().max(1)) } else { threads.max(1) };
        self.with_parts(parts, partitions)
    }

    fn cut_parts(&self, threads: usize) -> Parts {
        // A scan with a limit has only the parts that the limit needs.
        if self.limit.is_some() { self.parts.clone() } else { self.scan.cut_parts(None, threads) }
    }

    /// Returns a copy with other parts that has not run.
    fn with_parts(&self, parts: Parts, partitions: usize) -> Self {
        let properties = self.properties.as_ref().clone();
        let properties = Arc::new(properties.with_partitioning(Partitioning::UnknownPartitioning(partitions)));
        let scan = Self::assemble(Arc::clone(&self.scan), parts, self.limit, self.dynamic_filters.clone(), properties);
        Self { is_replicated: self.is_replicated, ..scan }
    }

    /// Returns true if each process reads the entire scan.
    pub fn is_replicated(&self) -> bool {
        self.is_replicated
    }

    /// Returns the dynamic filters, which become stricter while the query runs.
    pub fn dynamic_filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.dynamic_filters
    }

    /// Returns the address of the process that reads it, if it is one share of a distributed scan.
    pub fn reader_process(&self) -> Option<&str> {
        self.reader_process.as_deref()
    }

    /// Returns the maximum number of rows per partition.
    pub(super) fn row_limit(&self) -> Option<usize> {
        self.limit
    }

    pub(super) fn partitions(&self) -> usize {
        self.properties.output_partitioning().partition_count()
    }

    /// Starts a run whose rows come as pages, to be divided among the engine's workers. Rows that fail the `known`
    /// predicates over the scan's columns may be left out.
    pub fn start_page_run(&self, known_predicates: Vec<Predicate>, batch_rows: usize) -> PageRun {
        PageRun::new(
            &self.scan,
            &self.parts,
            self.dynamic_filters.clone(),
            known_predicates,
            batch_rows,
            self.metrics.clone(),
        )
    }

    /// Returns its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter()
    }

    /// Returns the number of parts.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// Returns the number of row groups that it may read.
    pub fn row_group_count(&self) -> usize {
        self.parts.row_groups()
    }
}

impl DisplayAs for ShardScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scan = &self.scan;
        write!(f, "ShardScan: {}, shards={} of {}", scan.table.name, scan.shards.len(), scan.shard_count)?;
        if let Some(limit) = self.limit {
            write!(f, ", limit={limit}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for ShardScanExec {
    fn name(&self) -> &'static str {
        "ShardScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        for filter in &self.dynamic_filters {
            if visit(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn reset_state(self: Arc<Self>) -> DfResult<Arc<dyn ExecutionPlan>> {
        // The operators above get new dynamic filters when they are reset; the old ones would leave out rows of the
        // next run.
        Ok(Arc::new(self.new_run(self.limit, Vec::new())))
    }

    fn repartitioned(&self, threads: usize, _: &ConfigOptions) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
        if self.reader_process.is_some() || threads <= self.partitions() {
            return Ok(None);
        }
        let parts = self.cut_parts(threads);
        let partitions = threads.clamp(1, parts.len().max(1));
        Ok((self.partitions() < partitions).then(|| Arc::new(self.with_parts(parts, partitions)) as _))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let partitions = self.properties.output_partitioning().partition_count();
        let scan = PartitionScan {
            scan: Arc::clone(&self.scan),
            queue: self.runs.queue(&self.parts, partition, partitions),
            dynamic_filters: self.dynamic_filters.clone(),
            known_predicates: Vec::new(),
            batch_rows: context.session_config().batch_size(),
            limit: self.limit,
        };
        let rows = scan.into_stream(self.schema(), &self.metrics, partition);
        Ok(Box::pin(cooperative(rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> DfResult<Arc<Statistics>> {
        if args.partition().is_some() {
            // Partitions take their parts at run time.
            return Ok(Arc::new(Statistics::new_unknown(&self.schema())));
        }
        let statistics = self.scan.statistics.clone();
        Ok(Arc::new(match self.limit {
            Some(limit) => statistics.with_fetch(Some(limit), 0, 1)?,
            None => statistics,
        }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.new_run(limit, self.dynamic_filters.clone())))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> DfResult<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let filters = pushed.parent_filters.iter().map(|filter| &filter.filter);
        let propagation =
            FilterPushdownPropagation::with_parent_pushdown_result(vec![PushedDown::No; pushed.parent_filters.len()]);
        let mut dynamic = self.dynamic_filters.clone();
        if phase == FilterPushdownPhase::Post {
            dynamic.extend(filters.filter(|filter| is_dynamic(filter)).map(Arc::clone));
        }
        if dynamic.len() == self.dynamic_filters.len() {
            return Ok(propagation);
        }
        let scan: Arc<dyn ExecutionPlan> = Arc::new(self.new_run(self.limit, dynamic));
        Ok(propagation.with_updated_node(scan))
    }
}

fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.is::<DynamicFilterPhysicalExpr>() || filter.children().into_iter().any(is_dynamic)
}
