//! DISTRIBUTE, SORT and CLUSTER clauses: distribution of rows over workers and their order in shards.

use catalog::{Column, Distribution, SortColumn, Table, TableOrder};
use datafusion::sql::sqlparser::ast::Ident;
use syntax::statement::{self, OrderClause};
use types::{ColumnId, Condition, SqlError, SqlResult};

use super::key_type::has_order;

/// Resolves the columns of a DISTRIBUTE clause.
///
/// # Errors
/// `42703` for an unknown column, `42701` for a duplicate one, `42883` for one whose type has no hash function.
pub(super) fn resolve_distribution(table: &Table, written: &statement::DistributionClause) -> SqlResult<Distribution> {
    Ok(match written {
        statement::DistributionClause::Random => Distribution::Random,
        statement::DistributionClause::Replicate => Distribution::Replicate,
        statement::DistributionClause::HashColumns(columns) => {
            let columns = find_columns(table, columns, "DISTRIBUTE")?;
            if let Some(column) = columns.iter().find(|column| !shards::is_hashable(&column.sql_type)) {
                let message = format!("could not identify a hash function for type {}", column.sql_type);
                return Err(SqlError::new(Condition::UndefinedFunction, message));
            }
            Distribution::On(columns.into_iter().map(|column| column.id).collect())
        }
    })
}

/// Resolves the columns of a SORT or CLUSTER clause.
///
/// # Errors
/// `42703` for an unknown column, `42701` for a duplicate one, `42883` for one whose type has no order.
pub(super) fn resolve_order(table: &Table, written: &OrderClause) -> SqlResult<TableOrder> {
    Ok(match written {
        OrderClause::Sort(keys) => {
            let names: Vec<Ident> = keys.iter().map(|key| key.column.clone()).collect();
            let columns = check_ordered(find_columns(table, &names, "SORT")?)?;
            let keys = columns.into_iter().zip(keys).map(|(column, key)| SortColumn {
                column,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
            TableOrder::Sort(keys.collect())
        }
        OrderClause::Cluster(names) => TableOrder::Cluster(check_ordered(find_columns(table, names, "CLUSTER")?)?),
    })
}

fn find_columns<'t>(table: &'t Table, names: &[Ident], clause: &str) -> SqlResult<Vec<&'t Column>> {
    let mut columns: Vec<&Column> = Vec::with_capacity(names.len());
    for name in names {
        let (_, column) = table.column_by_name(&name.value).ok_or_else(|| {
            let message = format!("column \"{}\" named in {clause} does not exist", name.value);
            SqlError::new(Condition::UndefinedColumn, message)
        })?;
        if columns.iter().any(|known| known.id == column.id) {
            let message = format!("column \"{}\" appears twice in {clause}", name.value);
            return Err(SqlError::new(Condition::DuplicateColumn, message));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn check_ordered(columns: Vec<&Column>) -> SqlResult<Vec<ColumnId>> {
    if let Some(column) = columns.iter().find(|column| !has_order(&column.sql_type)) {
        let message = format!("could not identify an ordering operator for type {}", column.sql_type);
        return Err(SqlError::new(Condition::UndefinedFunction, message));
    }
    Ok(columns.into_iter().map(|column| column.id).collect())
}
