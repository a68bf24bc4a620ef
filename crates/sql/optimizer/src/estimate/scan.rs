//! Estimates for scans, from the catalog's statistics.

use std::sync::Arc;

use arrow::datatypes::DataType;
use catalog::Column;
use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, TableScan};
use plan::estimate::{ColumnEstimate, RelationEstimate, UNKNOWN_ROWS, position};
use plan::{ShardTable, datum_to_scalar};
use types::SqlType;

use crate::common_subplans::SharedTable;

/// Default number of distinct values for columns without statistics, such as those of unflushed rows; PostgreSQL's
/// default.
const UNKNOWN_DISTINCT: f64 = 200.0;

/// Returns the estimate of a filter right above a scan of a catalog table; `None` for other scans. On first use
/// `estimate` computes it for all columns of the table; then it is cached with the table.
pub(super) fn cached_filter_estimate(
    scan: &TableScan,
    predicate: &Expr,
    estimate: impl FnOnce(RelationEstimate, &DFSchema) -> RelationEstimate,
) -> Option<RelationEstimate> {
    with_table(scan, |table| {
        let known = table.estimates.filtered.lock().get(predicate).cloned();
        let known = match known {
            Some(known) => known,
            None => {
                let schema = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table.schema()).ok()?;
                let found = Arc::new(estimate(table_relation(table), &schema));
                table.estimates.filtered.lock().insert(predicate.clone(), Arc::clone(&found));
                found
            }
        };
        Some(project(known.rows, &known.columns, scan.projection.as_deref()))
    })
    .flatten()
}

/// Estimates a scan: all rows of the table, with the scan's projection. The scan's filters do not count: they only help
/// pruning, and a filter above repeats them.
pub(super) fn estimate_scan(scan: &TableScan) -> RelationEstimate {
    if let Ok(provider) = source_as_provider(&scan.source)
        && let Some(shared) = provider.downcast_ref::<SharedTable>()
    {
        return shared.relation(scan.projection.as_ref());
    }
    let found = with_table(scan, |table| {
        project(table.rows.len() as f64, table_column_estimates(table), scan.projection.as_deref())
    });
    found.unwrap_or_else(|| RelationEstimate {
        rows: UNKNOWN_ROWS,
        columns: scan.projected_schema.fields().iter().map(|_| ColumnEstimate::unknown(UNKNOWN_ROWS)).collect(),
    })
}

/// Returns the estimate of all rows and columns of a table. Columns of row locations have no statistics.
fn table_relation(table: &ShardTable) -> RelationEstimate {
    let rows = table.rows.len() as f64;
    let mut columns = table_column_estimates(table).to_vec();
    columns.resize(table.schema().fields().len(), ColumnEstimate::unknown(rows));
    RelationEstimate { rows, columns }
}

fn table_column_estimates(table: &ShardTable) -> &[ColumnEstimate] {
    table
        .estimates
        .columns
        .get_or_init(|| table.table.columns.iter().map(|column| column_estimate(table, column)).collect())
}

fn project(rows: f64, all: &[ColumnEstimate], projection: Option<&[usize]>) -> RelationEstimate {
    let known = |index: &usize| all.get(*index).cloned().unwrap_or_else(|| ColumnEstimate::unknown(rows));
    let columns = match projection {
        Some(projection) => projection.iter().map(known).collect(),
        None => all.to_vec(),
    };
    RelationEstimate { rows, columns }
}

/// Calls `read` with the scanned table, if it is a catalog table.
pub(super) fn with_table<R>(scan: &TableScan, read: impl FnOnce(&ShardTable) -> R) -> Option<R> {
    let provider = source_as_provider(&scan.source).ok()?;
    provider.downcast_ref::<ShardTable>().map(read)
}

/// Returns the statistics of a table's column.
fn column_estimate(table: &ShardTable, column: &Column) -> ColumnEstimate {
    let rows = table.rows.len() as f64;
    let summary = table.rows.shards.summary(column);
    let bound = |datum: &Option<shards::Datum>| {
        datum.as_ref().and_then(|datum| datum_to_scalar(datum, &column.sql_type)).and_then(|value| position(&value))
    };
    let alone = |index: &[types::ColumnId]| index == [column.id];
    let distinct = if table.rows.shards.shards.is_empty() {
        let is_unique = table.table.row_indexes().any(|index| index.unique && alone(index.columns));
        if is_unique { rows } else { rows.min(UNKNOWN_DISTINCT) }.max(1.0)
    } else if table.files.is_some() {
        distinct_of_file(rows, bound(&summary.min).zip(bound(&summary.max)), &column.sql_type)
    } else if summary.unique {
        rows
    } else {
        (summary.distinct as f64).min(rows)
    }
    .max(1.0);
    let frequent: Arc<[(ScalarValue, f64)]> = summary
        .heavy_hitters
        .iter()
        .filter_map(|(datum, count)| Some((datum_to_scalar(datum, &column.sql_type)?, *count as f64 / rows.max(1.0))))
        .collect();
    ColumnEstimate {
        distinct,
        domain: distinct,
        nulls: summary.nulls as f64 / rows.max(1.0),
        min: bound(&summary.min),
        max: bound(&summary.max),
        frequent,
        width: width(&column.sql_type.arrow_type()),
    }
}

/// Returns the estimated distinct values of an external table's column, whose files have only bounds: integers and
/// dates are assumed to take every value between them.
fn distinct_of_file(rows: f64, bounds: Option<(f64, f64)>, sql_type: &SqlType) -> f64 {
    let is_whole = matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Date);
    match bounds {
        Some((min, max)) if is_whole => rows.min(max - min + 1.0),
        _ => rows.min(UNKNOWN_DISTINCT),
    }
}

/// Returns the bytes of a value of this type in memory; 24 for types of variable size.
fn width(data_type: &DataType) -> f64 {
    data_type.primitive_width().map_or(24.0, |bytes| bytes as f64)
}
