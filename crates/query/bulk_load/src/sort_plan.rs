//! Sorts rows in a table's order before they are cut into shards, so that each shard is sorted and covers a narrow
//! range of the key.

use std::sync::Arc;

use arrow::compute::SortOptions;
use catalog::{SortColumn, Table, TableOrder};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use scan::BucketAssigner;
use types::{ColumnId, SqlError, SqlResult};

use super::bucket_grouping::plan_bucket_grouping;
use super::bucket_order::plan_bucket_order;
use super::hilbert_order::plan_hilbert_order;

/// Orders rows as [`plan_table_order`] does, but keeps separate streams if they only have to be grouped by bucket.
pub(super) async fn plan_partitioned_order(
    table: &Arc<Table>,
    rows: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    match BucketAssigner::try_new(table) {
        Some(bucketing) if table.order == TableOrder::None => plan_bucket_grouping(rows, bucketing, task),
        _ => plan_table_order(table, rows, task).await,
    }
}

/// Plans a sort of `rows` by bucket and by the order of `table`, to one stream; without either, `rows` are unchanged.
///
/// Sorts that exceed memory spill.
pub async fn plan_table_order(
    table: &Arc<Table>,
    rows: Arc<dyn ExecutionPlan>,
    task: &Arc<TaskContext>,
) -> SqlResult<Arc<dyn ExecutionPlan>> {
    if let Some(bucketing) = BucketAssigner::try_new(table) {
        return plan_bucket_order(table, bucketing, rows, task).await;
    }
    let ascending = |column: &ColumnId| SortColumn { column: *column, descending: false, nulls_first: false };
    match &table.order {
        TableOrder::None => Ok(rows),
        TableOrder::Sort(columns) => plan_sort(table, columns, rows),
        // With one column, the curve is the column's order.
        TableOrder::Cluster(columns) if columns.len() < 2 => {
            plan_sort(table, &columns.iter().map(ascending).collect::<Vec<_>>(), rows)
        }
        TableOrder::Cluster(columns) => plan_hilbert_order(table, columns, rows, task).await,
    }
}

fn plan_sort(table: &Table, columns: &[SortColumn], rows: Arc<dyn ExecutionPlan>) -> SqlResult<Arc<dyn ExecutionPlan>> {
    let mut keys = Vec::with_capacity(columns.len());
    for column in columns {
        let options = SortOptions { descending: column.descending, nulls_first: column.nulls_first };
        keys.push(sort_key(table, column.column, options)?);
    }
    Ok(match LexOrdering::new(keys) {
        Some(ordering) => sort_and_merge(ordering, rows),
        None => rows,
    })
}

/// Sorts each partition of `rows` and merges them into one.
pub(super) fn sort_and_merge(ordering: LexOrdering, rows: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let partitions = rows.output_partitioning().partition_count();
    let sorted = SortExec::new(ordering.clone(), rows).with_preserve_partitioning(true);
    if partitions == 1 {
        return Arc::new(sorted);
    }
    Arc::new(SortPreservingMergeExec::new(ordering, Arc::new(sorted)))
}

/// Returns a sort key for a column of the table.
pub(super) fn sort_key(table: &Table, column: ColumnId, options: SortOptions) -> SqlResult<PhysicalSortExpr> {
    let position = column_position(table, column)?;
    let name = &table.columns[position].name;
    Ok(PhysicalSortExpr::new(Arc::new(Column::new(name, position)), options))
}

/// Returns the position of the column in the table.
pub(super) fn column_position(table: &Table, column: ColumnId) -> SqlResult<usize> {
    let found = table.columns.iter().position(|candidate| candidate.id == column);
    found.ok_or_else(|| {
        SqlError::internal(format!(
            "the sort key of table \"{}\" names a column that the table does not have",
            table.name
        ))
    })
}
