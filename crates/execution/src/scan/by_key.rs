//! Fresh rows found by an index instead of one by one, where filters fix all of its columns.

use std::sync::Arc;

use catalog::{RowIndex, Table, TableRows};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use rowstore::{Row, Value, encode_key};
use types::{ColumnId, RowId};

use crate::lookup;

/// The fresh rows that `filters` leave, and perhaps more, found by an index; `None` where no index helps.
pub(super) fn fresh_rows(table: &Table, rows: &TableRows, filters: &[Expr]) -> Option<Vec<(RowId, Arc<Row>)>> {
    let fixed: Vec<(ColumnId, &ScalarValue)> =
        filters.iter().flat_map(split_conjunction).filter_map(|filter| equality(table, filter)).collect();
    if fixed.is_empty() {
        return None;
    }
    let (index, key) = table.row_indexes().find_map(|index| Some((index, key(&index, &fixed)?)))?;
    let found = lookup::fresh(rows, index.oid, &key);
    found.into_iter().map(|found| Some((found.row, Arc::clone(rows.fresh_row(found.row)?)))).collect()
}

/// The key that the fixed values make, if they are of all columns of the index.
fn key(index: &RowIndex<'_>, fixed: &[(ColumnId, &ScalarValue)]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    for column in index.columns {
        let (_, value) = fixed.iter().find(|(fixed, _)| fixed == column)?;
        let array = value.to_array().ok()?;
        encode_key([Value::of(&*array, 0).ok()?], &mut key);
    }
    Some(key)
}

/// `column = value`, the value of exactly the column's type.
fn equality<'a>(table: &Table, filter: &'a Expr) -> Option<(ColumnId, &'a ScalarValue)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = filter else { return None };
    let (column, value) = match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), Expr::Literal(value, _)) | (Expr::Literal(value, _), Expr::Column(column)) => {
            (column, value)
        }
        _ => return None,
    };
    let (_, column) = table.column_by_name(&column.name)?;
    (value.data_type() == column.sql_type.arrow_type() && !value.is_null()).then_some((column.id, value))
}
