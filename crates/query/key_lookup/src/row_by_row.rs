//! Chains that do nothing to rows but compute their columns: each row is made of the one that is stored, or of the parameters, by itself.

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

/// What becomes of a row.
#[derive(Debug)]
pub(super) struct RowByRow {
    /// Of rows written out, their values; else the row is what is stored.
    written: Vec<Vec<Cell>>,
    /// One projection after the other.
    projections: Vec<Vec<Cell>>,
    /// How many parameters lie behind the row's own values.
    carried: usize,
    /// What the last gives.
    columns: Arc<[StoredColumn]>,
}

impl RowByRow {
    /// Of the steps that follow the rows of a table which an index finds by all that is asked of them, or rows written out.
    pub(super) fn of(source: &Rows, steps: &[Run], parameters: &Schema, carried: usize) -> Option<Self> {
        let (written, mut schema) = match source {
            Rows::Keyed(keyed) => (Vec::new(), keyed.schema()),
            Rows::One => (vec![Vec::new()], parameters),
            Rows::Written(WrittenRows { rows, schema, .. }) => {
                // Numerics of several rows may have other digits each.
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
                // It says which part of the index is meant.
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

    /// What the projections make of a row's values; `None` where columns have to be computed.
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
    /// The rows that are made of stored ones.
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

    /// The rows that an INSERT puts into `table`, as they are stored; `None` where they have to be columns first.
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

/// A value that was made in the form of one type as a column of another has it: a numeric parameter has the digits that it was sent with.
/// `None` where that takes arrays.
fn in_column<'a>(value: Value<'a>, form: &SqlType, column: &SqlType) -> SqlResult<Option<Value<'a>>> {
    Ok(match (value, form, column) {
        (Value::Null, _, _) => Some(Value::Null),
        (Value::Decimal(value), SqlType::Numeric { scale: from, .. }, SqlType::Numeric { precision, scale }) => {
            Some(Value::Decimal(with_digits(value, *from, Digits::new(*precision, *scale))?))
        }
        (value, form, column) => (form.arrow_type() == column.arrow_type()).then_some(value),
    })
}

/// The positions of a table's columns by ascending id.
fn in_order(table: &Table) -> Vec<usize> {
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    if !table.columns.is_sorted_by_key(|column| column.id) {
        order.sort_unstable_by_key(|at| table.columns[*at].id);
    }
    order
}

/// A SQL type whose values travel in this form; `None` for forms that rows are not made in here.
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
