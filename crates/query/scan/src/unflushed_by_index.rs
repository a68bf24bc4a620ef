//! Unflushed rows found by an index instead of one by one, if filters bound a range of it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use catalog::{RowIndex, Table, TableRows};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr};
use rowstore::{RowVersion, Value, encode_key_value};
use shards::{CompareOp, Datum, Predicate, Test};
use storage_error::from_rowstore;
use types::{ColumnId, Oid, RowId};

use crate::lookup::{self, Comparison, IndexAccess, KeyRange, comparison_of, datum_to_value};

/// Maximum number of keys looked up one by one.
const KEYS_MAX: usize = 4_096;

/// Unflushed rows with their ids.
pub(super) type UnflushedRows = Vec<(RowId, Arc<RowVersion>)>;

/// Index range that contains all unflushed rows that pass the filters, and possibly others.
#[derive(Debug)]
pub(super) struct UnflushedIndexRange {
    index: Oid,
    /// Range of keys; `None` if no row can pass.
    range: Option<KeyRange>,
    /// Number of leading index columns with an equality condition.
    fixed_columns: usize,
}

impl UnflushedIndexRange {
    /// Chooses an index by the filters known at planning time; `None` if none helps.
    pub(super) fn choose(table: &Table, filters: &[Expr]) -> Option<Self> {
        let known = filters.iter().flat_map(split_conjunction).filter_map(|filter| parse_comparison(table, filter));
        let (conditions, values): (Vec<_>, Vec<_>) = known.unzip();
        let access = IndexAccess::choose(table, &conditions)?;
        let values = values.iter().map(|value| value.to_array()).collect::<Result<Vec<ArrayRef>, _>>().ok()?;
        let fixed = access.columns.len() - access.varying_columns().len();
        let range = access.range(|at| Value::from_array(&*values[at], 0).map_err(from_rowstore)).ok()?;
        Some(Self { index: access.index, range, fixed_columns: fixed })
    }

    /// Returns the first `count_max` rows of the range.
    pub(super) fn rows(&self, rows: &TableRows, count_max: usize) -> UnflushedRows {
        let Some(range) = &self.range else { return Vec::new() };
        rows_with_ids(rows, lookup::unflushed_rows(rows, self.index, range).take(count_max))
    }
}

/// Returns the unflushed rows that can pass `predicates`, and possibly others, by looking up the listed values; `None`
/// if that fixes no more index columns than `keyed` does.
pub(super) fn rows_by_listed_keys(
    table: &Table,
    rows: &TableRows,
    predicates: &[Predicate],
    keyed: Option<&UnflushedIndexRange>,
) -> Option<UnflushedRows> {
    let mut lists: HashMap<ColumnId, Vec<&Datum>> = HashMap::new();
    for predicate in predicates {
        let Some(list) = listed_values(&predicate.test) else { continue };
        let known = lists.entry(predicate.column).or_insert_with(|| list.clone());
        if list.len() < known.len() {
            *known = list;
        }
    }
    let fixed = |index: &RowIndex<'_>| index.columns.iter().take_while(|column| lists.contains_key(column)).count();
    let index = table.row_indexes().max_by_key(fixed)?;
    let columns = &index.columns[..fixed(&index)];
    let count = columns.iter().try_fold(1_usize, |count, column| count.checked_mul(lists[column].len()))?;
    if columns.len() <= keyed.map_or(0, |keyed| keyed.fixed_columns) || KEYS_MAX < count {
        return None;
    }
    let mut keys = vec![Vec::new()];
    for column in columns {
        let longer = keys.iter().flat_map(|key: &Vec<u8>| {
            lists[column].iter().map(move |datum| {
                let mut key = key.clone();
                encode_key_value(datum_to_value(datum), &mut key);
                key
            })
        });
        keys = longer.collect();
    }
    keys.sort_unstable();
    keys.dedup();
    let found = keys.iter().flat_map(|key| {
        let range = KeyRange::starting_with(key);
        lookup::unflushed_rows(rows, index.oid, &range).collect::<Vec<_>>()
    });
    Some(rows_with_ids(rows, found))
}

/// Returns the values that a test accepts, if it lists them. Floats are left out, because equal floats may have
/// different keys.
fn listed_values(test: &Test) -> Option<Vec<&Datum>> {
    match test {
        Test::Compare(CompareOp::Eq, datum) => Some(vec![datum]),
        Test::In(values) => Some(values.iter().collect()),
        Test::All(tests) => tests.iter().filter_map(listed_values).min_by_key(Vec::len),
        Test::Any(tests) => tests.iter().map(listed_values).collect::<Option<Vec<_>>>().map(|lists| lists.concat()),
        _ => None,
    }
    .filter(|values| values.iter().all(|value| !matches!(value, Datum::Float(_))))
}

fn rows_with_ids(rows: &TableRows, found: impl Iterator<Item = RowId>) -> UnflushedRows {
    found.filter_map(|row| Some((row, Arc::clone(rows.fresh_row(row)?)))).collect()
}

/// Parses `column comparison value`, where the value has exactly the column's type.
fn parse_comparison<'a>(table: &Table, filter: &'a Expr) -> Option<((ColumnId, Comparison), &'a ScalarValue)> {
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
