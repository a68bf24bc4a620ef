//! Fresh rows found by an index instead of one by one, where filters say which part of it.

use std::sync::Arc;

use arrow::array::ArrayRef;
use catalog::{Table, TableRows};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr};
use rowstore::Row;
use types::{ColumnId, RowId};

use crate::lookup::{self, Access, Comparison, comparison_of};

/// The fresh rows that `filters` leave, and perhaps more, found by an index; `None` where no index helps.
pub(super) fn fresh_rows(table: &Table, rows: &TableRows, filters: &[Expr]) -> Option<Vec<(RowId, Arc<Row>)>> {
    let known = filters.iter().flat_map(split_conjunction).filter_map(|filter| comparison(table, filter));
    let (conditions, values): (Vec<_>, Vec<_>) = known.unzip();
    let access = Access::choose(table, &conditions)?;
    let values = values.iter().map(|value| value.to_array()).collect::<Result<Vec<ArrayRef>, _>>().ok()?;
    let Some(range) = access.range(&values).ok()? else { return Some(Vec::new()) };
    let found = lookup::fresh(rows, access.index, &range);
    found.map(|row| Some((row, Arc::clone(rows.fresh_row(row)?)))).collect()
}

/// `column comparison value`, the value of exactly the column's type.
fn comparison<'a>(table: &Table, filter: &'a Expr) -> Option<((ColumnId, Comparison), &'a ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else { return None };
    let comparison = comparison_of(*op)?;
    let (column, value, comparison) = match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _)) => (column, value, comparison),
        (Expr::Literal(value, _), Expr::Column(column)) => (column, value, comparison.reversed()),
        _ => return None,
    };
    let (_, column) = table.column_by_name(&column.name)?;
    (value.data_type() == column.sql_type.arrow_type()).then_some(((column.id, comparison), value))
}
