//! A table's rows as the catalog describes them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::DataType;
use catalog::Column;
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, TableScan};
use parking_lot::Mutex;
use types::SqlType;

use super::column::position;
use super::{ColumnFacts, Relation, UNKNOWN_ROWS};
use crate::shard_table::{ShardTable, scalar};
use crate::shared::SharedTable;

/// Values of a column of which nothing is known, as its rows are all fresh; PostgreSQL assumes as many.
const UNKNOWN_DISTINCT: f64 = 200.0;

/// The columns of a scan and the filter above it.
type Asked = (Option<Vec<usize>>, Expr);

/// What was found out about the rows of a statement's table: rules ask for it again and again.
#[derive(Debug, Default)]
pub(crate) struct KnownRows {
    /// Of all columns.
    facts: OnceLock<Vec<ColumnFacts>>,
    filtered: Mutex<HashMap<Asked, Relation>>,
}

/// What passes a filter right above a scan: found out by `estimate` where that was not asked before.
pub(super) fn filtered(scan: &TableScan, predicate: &Expr, estimate: impl FnOnce() -> Relation) -> Relation {
    let Ok(provider) = source_as_provider(&scan.source) else { return estimate() };
    let Some(table) = provider.downcast_ref::<ShardTable>() else { return estimate() };
    let key = (scan.projection.clone(), predicate.clone());
    let known = table.known.filtered.lock().get(&key).cloned();
    known.unwrap_or_else(|| {
        let relation = estimate();
        table.known.filtered.lock().insert(key, relation.clone());
        relation
    })
}

/// All rows of the table, the scan's projection applied. Its filters are not: they are pruning hints that a filter above repeats.
pub(super) fn relation(scan: &TableScan) -> Relation {
    let fields = scan.projected_schema.fields();
    if let Ok(provider) = source_as_provider(&scan.source)
        && let Some(shared) = provider.downcast_ref::<SharedTable>()
    {
        return shared.relation(scan.projection.as_ref());
    }
    let found = with_table(scan, |table| {
        let rows = table.rows.len() as f64;
        let all =
            table.known.facts.get_or_init(|| table.table.columns.iter().map(|column| facts(table, column)).collect());
        let columns = match &scan.projection {
            Some(projection) => {
                let known = |index: &usize| all.get(*index).cloned().unwrap_or_else(|| ColumnFacts::unknown(rows));
                projection.iter().map(known).collect()
            }
            None => all.clone(),
        };
        Relation { rows, columns }
    });
    found.unwrap_or_else(|| Relation {
        rows: UNKNOWN_ROWS,
        columns: fields.iter().map(|_| ColumnFacts::unknown(UNKNOWN_ROWS)).collect(),
    })
}

/// Calls `read` with the table of the catalog that is scanned, if it is one.
pub(super) fn with_table<R>(scan: &TableScan, read: impl FnOnce(&ShardTable) -> R) -> Option<R> {
    let provider = source_as_provider(&scan.source).ok()?;
    provider.downcast_ref::<ShardTable>().map(read)
}

fn facts(table: &ShardTable, column: &Column) -> ColumnFacts {
    let rows = table.rows.len() as f64;
    let summary = table.rows.shards.summary(column);
    let bound = |datum: &Option<shards::Datum>| {
        datum.as_ref().and_then(|datum| scalar(datum, &column.sql_type)).and_then(|value| position(&value))
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
        .filter_map(|(datum, count)| Some((scalar(datum, &column.sql_type)?, *count as f64 / rows.max(1.0))))
        .collect();
    ColumnFacts {
        distinct,
        domain: distinct,
        nulls: summary.nulls as f64 / rows.max(1.0),
        min: bound(&summary.min),
        max: bound(&summary.max),
        frequent,
        width: width(&column.sql_type.arrow_type()),
    }
}

/// A guess at the distinct values of a column of files, which say no more than its bounds: whole numbers take every value between them.
fn distinct_of_file(rows: f64, bounds: Option<(f64, f64)>, sql_type: &SqlType) -> f64 {
    let is_whole = matches!(sql_type, SqlType::Int2 | SqlType::Int4 | SqlType::Int8 | SqlType::Date);
    match bounds {
        Some((min, max)) if is_whole => rows.min(max - min + 1.0),
        _ => rows.min(UNKNOWN_DISTINCT),
    }
}

/// Bytes of a value of this type in memory; texts by a guess.
fn width(data_type: &DataType) -> f64 {
    data_type.primitive_width().map_or(24.0, |bytes| bytes as f64)
}
