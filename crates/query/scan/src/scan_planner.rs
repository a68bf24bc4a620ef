//! Planning of table scans: prunes shards and divides the scan into parts.

use std::sync::{Arc, OnceLock};

use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::{DFSchema, Result as DfResult, Statistics};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::ExecutionPlan;
use objects::Objects;
use plan::{ShardTable, TableScanPlanner};
use shards::{BlockCache, BucketKeys, ColumnDef, Predicate, ShardMeta, ShardReader, TierStats};

use crate::bucket_division::PlanForWorkers;
use crate::fragment_cache::{FRAGMENT_TIER, FragmentCache};
use crate::open_shards::OpenShardCache;
use crate::predicates;
use crate::scan::{OpaquePin, Scan, ScanShard};
use crate::shard_scan_exec::ShardScanExec;
use crate::table_columns::{bucket_keys, column_defs, row_locator_columns};
use crate::unflushed_by_index::UnflushedIndexRange;

/// Maximum number of unflushed rows in an index range that are listed at planning time, so that their number is known
/// exactly.
const LISTED_ROWS_MAX: usize = 512;

/// Number of shards from which on a scan with a limit looks only at the first shards, without pruning.
const UNPRUNED_SHARDS_MIN: usize = 256;

/// Estimated size of an unflushed row, in bytes.
const UNFLUSHED_ROW_BYTES: u64 = 100;

/// Planner of scans over one storage.
#[derive(Debug)]
pub struct ScanPlanner {
    pub(crate) objects: Objects,
    pub(crate) opened: Arc<OpenShardCache>,
    pub(crate) blocks: Arc<BlockCache>,
    pub(crate) fragments: Arc<FragmentCache>,
}

impl ScanPlanner {
    pub fn new(
        objects: Objects,
        opened: Arc<OpenShardCache>,
        blocks: Arc<BlockCache>,
        fragments: Arc<FragmentCache>,
    ) -> Self {
        Self { objects, opened, blocks, fragments }
    }
}

impl ScanPlanner {
    /// Returns a shard, and opens it on first use.
    pub async fn open_shard(&self, shard: &Arc<ShardMeta>) -> shards::Result<ShardReader> {
        self.opened.get_or_open(&self.objects, shard).await
    }

    /// Returns usage statistics of the page cache and of the fragment cache.
    pub fn cache_tiers(&self) -> Vec<TierStats> {
        self.blocks.tier_stats().into_iter().chain([self.fragments.tier_stats(FRAGMENT_TIER)]).collect()
    }
}

impl TableScanPlanner for ScanPlanner {
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
        session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let mut table_columns = column_defs(&table.table);
        let real = table_columns.len();
        if table.has_row_positions {
            table_columns.extend(row_locator_columns());
        }
        let table_columns: Arc<[ColumnDef]> = table_columns.into();
        let columns = match projection {
            Some(projection) => projection.iter().map(|column| table_columns[*column].clone()).collect(),
            None => Arc::clone(&table_columns),
        };
        let predicates = static_predicates(table, filters, &table_columns[..real], session)?;
        let rows = &table.rows;
        let left = match limit.filter(|_| filters.is_empty() && UNPRUNED_SHARDS_MIN <= rows.shards.shards.len()) {
            Some(limit) => rows.first_shards(limit as u64),
            None => rows.shards.prune(&predicates, &table_columns[..real]),
        };
        let keys = bucket_keys(&table.table);
        let buckets = |shard: &ShardMeta| Some(shard.buckets_for_keys(keys.as_ref()?)?.bucket_set());
        let shard = |(number, shard): &(usize, Arc<ShardMeta>)| ScanShard {
            meta: Arc::clone(shard),
            table_position: *number,
            deleted: rows.deleted_positions(shard.id).map(|deleted| Arc::new(deleted.into_owned())),
            rows_read_elsewhere: Vec::new(),
            buckets: buckets(shard).unwrap_or(u64::MAX),
            file: table.files.as_ref().and_then(|files| files.get(*number).cloned()),
        };
        let shards: Vec<ScanShard> = left.iter().map(shard).collect();

        let keyed = UnflushedIndexRange::choose(&table.table, filters);
        let few = keyed
            .as_ref()
            .map(|keyed| keyed.rows(rows, LISTED_ROWS_MAX + 1))
            .filter(|few| few.len() <= LISTED_ROWS_MAX);
        // Upper bound: the number of rows in an index range is known only when they are read.
        let most = rows.fresh.len() + rows.own_rows.layer.len() - rows.own_rows.layer.hidden_len();
        let fresh = few.as_ref().map_or(most, Vec::len);

        let shard_count = rows.shards.shards.len();
        let statistics = table.table_statistics(projection);
        let is_whole = shards.len() == shard_count && few.is_none();
        let mut statistics = if is_whole { statistics } else { scale_statistics(statistics, table, &shards, fresh) };
        if let Some(few) = few.as_ref().filter(|_| shards.is_empty()) {
            statistics.num_rows = Precision::Exact(few.len());
        }
        let scan = Scan {
            objects: self.objects.clone(),
            opened: Arc::clone(&self.opened),
            blocks: self.blocks.for_table(table.table.oid, table.table.cache),
            fragments: Arc::clone(&self.fragments),
            table: Arc::clone(&table.table),
            columns,
            table_columns,
            predicates,
            shard_count,
            statistics,
            shards,
            bucketed_by: keys.as_ref().and_then(BucketKeys::only_column),
            rows: Arc::clone(rows),
            unflushed_range: keyed,
            unflushed: few.map_or_else(OnceLock::new, OnceLock::from),
            unflushed_rows_max: fresh,
            _pin: table.pin.clone().map(OpaquePin),
        };
        let threads = session.config().target_partitions();
        let parts = scan.cut_parts(limit, threads);
        let partitions = threads.clamp(1, parts.len().max(1));
        let scan = ShardScanExec::new(Arc::new(scan), parts, partitions, limit);
        let is_for_workers = session.config().get_extension::<PlanForWorkers>().is_some();
        Ok(Arc::new(if is_for_workers { scan.with_worker_partitions(threads) } else { scan }))
    }
}

/// Returns the predicates in the filters that can prune shards.
fn static_predicates(
    table: &ShardTable,
    filters: &[Expr],
    columns: &[ColumnDef],
    session: &dyn Session,
) -> DfResult<Vec<Predicate>> {
    if filters.is_empty() {
        return Ok(Vec::new());
    }
    let schema = datafusion::catalog::TableProvider::schema(table);
    // Filters name columns with or without their table.
    let schema = DFSchema::try_from(schema)?;
    let mut predicates = Vec::new();
    for filter in filters {
        let filter = remove_qualifiers(filter.clone())?;
        // Types are resolved by now. A filter without a physical form only does not prune: the operator above tests it
        // anyway.
        let context = PhysicalPlanningContext::default();
        if let Ok(filter) = create_physical_expr(&filter, &schema, session.execution_props(), &context) {
            predicates.extend(predicates::extract_predicates(&filter, columns));
        }
    }
    Ok(predicates)
}

fn remove_qualifiers(filter: Expr) -> DfResult<Expr> {
    use datafusion::common::Column as Name;
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let plain = filter.transform(|expr| {
        Ok(match expr {
            Expr::Column(name) if name.relation.is_some() => {
                Transformed::yes(Expr::Column(Name::new_unqualified(name.name)))
            }
            other => Transformed::no(other),
        })
    });
    plain.map(|plain| plain.data)
}

/// Scales the statistics to the shards and the unflushed rows that are left.
fn scale_statistics(statistics: Statistics, table: &ShardTable, shards: &[ScanShard], fresh: usize) -> Statistics {
    let rows: u64 = shards.iter().map(|shard| shard.meta.rows).sum::<u64>() + fresh as u64;
    let bytes: u64 = shards.iter().map(|shard| shard.meta.bytes).sum::<u64>() + fresh as u64 * UNFLUSHED_ROW_BYTES;
    let part = |count: Precision<usize>| match count.get_value() {
        #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "an estimate")]
        #[expect(clippy::cast_possible_truncation, reason = "not more than the count itself")]
        Some(count) => Precision::Inexact((*count as f64 * rows as f64 / table.rows.len().max(1) as f64) as usize),
        None => Precision::Absent,
    };
    let mut statistics = statistics.to_inexact();
    statistics.num_rows = Precision::Inexact(usize::try_from(rows).unwrap_or(usize::MAX));
    statistics.total_byte_size = Precision::Inexact(usize::try_from(bytes).unwrap_or(usize::MAX));
    for column in &mut statistics.column_statistics {
        column.null_count = part(column.null_count);
        column.byte_size = part(column.byte_size);
    }
    statistics
}
