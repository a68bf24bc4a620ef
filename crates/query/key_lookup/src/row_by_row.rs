//! Projections computed row by row, from stored rows or from the parameters, without arrays.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use catalog::Table;
use datafusion::common::ScalarValue;
use rowstore::{StoredColumn, Tuple, Value};
use scan::with_digits;
use storage_error::from_rowstore;
use types::numeric::Digits;
use types::{ColumnId, SqlResult, SqlType};

use super::cell::{Cell, values, values_of};
use super::compiled::{Compiled, Rows};
use super::expression::Expression;
use super::plain::StoredRows;
use super::steps::Run;
use super::written::WrittenRows;

/// Projections of a chain in a form that is computed value by value.
#[derive(Debug)]
pub(super) struct RowByRow {
    /// Rows of VALUES; empty if the rows are stored ones.
    written: Vec<Vec<Cell>>,
    /// Projections, applied in order.
    projections: Vec<Vec<Cell>>,
    /// Number of parameters that follow the row's own values.
    carried: usize,
    /// Columns of the last projection.
    columns: Arc<[StoredColumn]>,
}

impl RowByRow {
    /// Converts the steps; `None` if they do more than project, or an expression needs arrays. Filters are skipped if
    /// the index range implies them.
    pub(super) fn of(source: &Rows, steps: &[Run], parameters: &Schema, carried: usize) -> Option<Self> {
        let (written, mut schema) = match source {
            Rows::Keyed(keyed) => (Vec::new(), keyed.schema()),
            Rows::One => (vec![Vec::new()], parameters),
            Rows::Written(WrittenRows { rows, schema, .. }) => {
                // The scale of a numeric may differ between rows.
                let is_so = |(cell, field): (&Expression, &FieldRef)| {
                    cell.data_type(parameters).is_ok_and(|form| form == *field.data_type())
                };
                if !rows.iter().all(|row| row.iter().zip(schema.fields()).all(is_so)) {
                    return None;
                }
                let cells = rows.iter().map(|row| Cell::of_all(row, parameters));
                (cells.collect::<Option<Vec<_>>>()?, parameters)
            }
            Rows::Joined(_) | Rows::Unnested(_) | Rows::Scanned | Rows::Given { .. } => return None,
        };
        let written_schema;
        if let Rows::Written(WrittenRows { schema: own, .. }) = source {
            let carried = parameters.fields().iter().take(carried);
            written_schema = Schema::new(own.fields().iter().chain(carried).cloned().collect::<Vec<_>>());
            schema = &written_schema;
        }
        let mut projections = Vec::new();
        for step in steps {
            match step {
                // The index range implies this filter.
                Run::Filter(_) if projections.is_empty() && matches!(source, Rows::Keyed(keyed) if keyed.is_exact) => {}
                Run::Project(expressions, made) => {
                    projections.push(Cell::of_all(expressions, schema)?);
                    schema = made;
                }
                Run::Cut { .. } if matches!(source, Rows::Keyed(_)) => {}
                _ => return None,
            }
        }
        if projections.is_empty() {
            return None;
        }
        let given = schema.fields().len() - carried;
        let column = |(id, of): (i32, &DataType)| {
            Some(StoredColumn { id: ColumnId(id), sql_type: stored_as(of)?, missing: None })
        };
        let columns = (1..).zip(schema.fields()[..given].iter().map(|field| field.data_type()));
        let columns = columns.map(column).collect::<Option<Vec<_>>>()?;
        Some(Self { written, projections, carried, columns: columns.into() })
    }

    /// Applies the projections to a row's values; `None` if arrays are needed.
    fn project<'a>(&'a self, row: Vec<Value<'a>>, parameters: &[Value<'a>]) -> SqlResult<Option<Vec<Value<'a>>>> {
        let mut row = row;
        for projection in &self.projections {
            row.extend_from_slice(&parameters[..self.carried]);
            let Some(made) = values(projection, &row)? else { return Ok(None) };
            row = made;
        }
        Ok(Some(row))
    }
}

impl Compiled {
    /// Computes the result rows from stored rows; `None` if arrays are needed.
    pub(super) fn computed_rows(&self, stored: &[Tuple], parameters: &[ScalarValue]) -> SqlResult<Option<StoredRows>> {
        let (Some(by_row), Rows::Keyed(keyed)) = (&self.row_by_row, &self.source) else { return Ok(None) };
        let Some(parameters) = values_of(parameters) else { return Ok(None) };
        let mut rows = Vec::with_capacity(stored.len());
        for tuple in stored {
            let Some(values) = keyed.values_of(tuple)? else { return Ok(None) };
            let Some(made) = by_row.project(values, &parameters)? else { return Ok(None) };
            let ids = by_row.columns.iter().map(|column| column.id);
            rows.push(Tuple::encode(ids.zip(made)).map_err(from_rowstore)?);
        }
        Ok(Some(StoredRows { rows, columns: Arc::clone(&by_row.columns) }))
    }

    /// Returns the rows that an INSERT puts into `table` in their stored form; `None` if arrays are needed.
    pub(super) fn written_rows(&self, table: &Table, parameters: &[ScalarValue]) -> SqlResult<Option<Vec<Tuple>>> {
        let Some(by_row) = &self.row_by_row else { return Ok(None) };
        let is_written = matches!(self.source, Rows::One | Rows::Written(_));
        if !is_written || by_row.columns.len() < table.columns.len() {
            return Ok(None);
        }
        let Some(parameters) = values_of(parameters) else { return Ok(None) };
        let order = in_order(table);
        let mut rows = Vec::with_capacity(by_row.written.len());
        for cells in &by_row.written {
            let Some(row) = values(cells, &parameters)? else { return Ok(None) };
            let Some(made) = by_row.project(row, &parameters)? else { return Ok(None) };
            let mut row = Vec::with_capacity(order.len());
            for at in &order {
                let (column, form) = (&table.columns[*at], &by_row.columns[*at].sql_type);
                let Some(value) = in_column(made[*at], form, &column.sql_type)? else { return Ok(None) };
                row.push((column.id, value));
            }
            rows.push(Tuple::encode(row).map_err(from_rowstore)?);
        }
        Ok(Some(rows))
    }
}

/// Converts a value from the type `form` to that of a column: a numeric parameter has the scale that it was sent with.
/// `None` if arrays are needed.
fn in_column<'a>(value: Value<'a>, form: &SqlType, column: &SqlType) -> SqlResult<Option<Value<'a>>> {
    Ok(match (value, form, column) {
        (Value::Null, _, _) => Some(Value::Null),
        (Value::Decimal(value), SqlType::Numeric { scale: from, .. }, SqlType::Numeric { precision, scale }) => {
            Some(Value::Decimal(with_digits(value, *from, Digits::new(*precision, *scale))?))
        }
        (value, form, column) => (form.arrow_type() == column.arrow_type()).then_some(value),
    })
}

/// Returns the positions of a table's columns by ascending column id.
fn in_order(table: &Table) -> Vec<usize> {
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    if !table.columns.is_sorted_by_key(|column| column.id) {
        order.sort_unstable_by_key(|at| table.columns[*at].id);
    }
    order
}

/// Returns a SQL type whose values have this Arrow type; `None` for types that are not computed row by row.
pub(super) fn stored_as(form: &DataType) -> Option<SqlType> {
    let scalar = [
        SqlType::Bool,
        SqlType::Int2,
        SqlType::Int4,
        SqlType::Int8,
        SqlType::Float4,
        SqlType::Float8,
        SqlType::Text,
        SqlType::Date,
        SqlType::Time,
        SqlType::Timestamp,
        SqlType::TimestampTz,
        SqlType::Uuid,
        SqlType::Bytea,
        SqlType::Interval,
    ];
    match form {
        DataType::Decimal128(precision, scale) => {
            Some(SqlType::Numeric { precision: *precision, scale: u8::try_from(*scale).ok()? })
        }
        DataType::Null | DataType::Utf8 => Some(SqlType::Text),
        form => scalar.into_iter().find(|sql_type| sql_type.arrow_type() == *form),
    }
}
