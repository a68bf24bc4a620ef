//! Projections computed row by row, from stored rows or from the parameters, without arrays.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use catalog::Table;
use datafusion::common::ScalarValue;
use rowstore::{StoredColumn, Tuple, Value};
use scan::rescale_numeric;
use storage_error::from_rowstore;
use types::numeric::NumericPrecision;
use types::{ColumnId, SqlResult, SqlType};

use super::compiled_chain::{CompiledChain, RowSource};
use super::compiled_steps::CompiledStep;
use super::stored_columns::StoredRows;
use super::value_expression::{ValueExpression, evaluate_all, scalars_to_values};
use super::values_source::ValuesSource;
use super::vectorized_expression::Expression;

/// Projections of a chain in a form that is computed value by value.
#[derive(Debug)]
pub(super) struct RowProjection {
    /// Rows of VALUES; empty if the rows are stored ones.
    values_rows: Vec<Vec<ValueExpression>>,
    /// Projections, applied in order.
    projections: Vec<Vec<ValueExpression>>,
    /// Number of parameters that follow the row's own values.
    parameter_columns: usize,
    /// Columns of the last projection.
    columns: Arc<[StoredColumn]>,
}

impl RowProjection {
    /// Converts the steps; `None` if they do more than project, or an expression needs arrays. Filters are skipped if
    /// the index range implies them.
    pub(super) fn try_new(
        source: &RowSource,
        steps: &[CompiledStep],
        parameters: &Schema,
        carried: usize,
    ) -> Option<Self> {
        let (written, mut schema) = match source {
            RowSource::IndexRange(keyed) => (Vec::new(), keyed.schema()),
            RowSource::SingleRow => (vec![Vec::new()], parameters),
            RowSource::Values(ValuesSource { rows, schema, .. }) => {
                // The scale of a numeric may differ between rows.
                let is_so = |(cell, field): (&Expression, &FieldRef)| {
                    cell.data_type(parameters).is_ok_and(|form| form == *field.data_type())
                };
                if !rows.iter().all(|row| row.iter().zip(schema.fields()).all(is_so)) {
                    return None;
                }
                let cells = rows.iter().map(|row| ValueExpression::try_compile_all(row, parameters));
                (cells.collect::<Option<Vec<_>>>()?, parameters)
            }
            RowSource::IndexJoin(_) | RowSource::Unnest(_) | RowSource::NoIndex | RowSource::CallerRows { .. } => {
                return None;
            }
        };
        let written_schema;
        if let RowSource::Values(ValuesSource { schema: own, .. }) = source {
            let carried = parameters.fields().iter().take(carried);
            written_schema = Schema::new(own.fields().iter().chain(carried).cloned().collect::<Vec<_>>());
            schema = &written_schema;
        }
        let mut projections = Vec::new();
        for step in steps {
            match step {
                // The index range implies this filter.
                CompiledStep::Filter(_)
                    if projections.is_empty()
                        && matches!(source, RowSource::IndexRange(keyed) if keyed.range_implies_filters) => {}
                CompiledStep::Project(expressions, made) => {
                    projections.push(ValueExpression::try_compile_all(expressions, schema)?);
                    schema = made;
                }
                CompiledStep::Limit { .. } if matches!(source, RowSource::IndexRange(_)) => {}
                _ => return None,
            }
        }
        if projections.is_empty() {
            return None;
        }
        let given = schema.fields().len() - carried;
        let column = |(id, of): (i32, &DataType)| {
            Some(StoredColumn { id: ColumnId(id), sql_type: stored_type(of)?, default_value: None })
        };
        let columns = (1..).zip(schema.fields()[..given].iter().map(|field| field.data_type()));
        let columns = columns.map(column).collect::<Option<Vec<_>>>()?;
        Some(Self { values_rows: written, projections, parameter_columns: carried, columns: columns.into() })
    }

    /// Applies the projections to a row's values; `None` if arrays are needed.
    fn project<'a>(&'a self, row: Vec<Value<'a>>, parameters: &[Value<'a>]) -> SqlResult<Option<Vec<Value<'a>>>> {
        let mut row = row;
        for projection in &self.projections {
            row.extend_from_slice(&parameters[..self.parameter_columns]);
            let Some(made) = evaluate_all(projection, &row)? else { return Ok(None) };
            row = made;
        }
        Ok(Some(row))
    }
}

impl CompiledChain {
    /// Computes the result rows from stored rows; `None` if arrays are needed.
    pub(super) fn project_rows(&self, stored: &[Tuple], parameters: &[ScalarValue]) -> SqlResult<Option<StoredRows>> {
        let (Some(by_row), RowSource::IndexRange(keyed)) = (&self.projection, &self.source) else { return Ok(None) };
        let Some(parameters) = scalars_to_values(parameters) else { return Ok(None) };
        let mut rows = Vec::with_capacity(stored.len());
        for tuple in stored {
            let Some(values) = keyed.row_values(tuple)? else { return Ok(None) };
            let Some(made) = by_row.project(values, &parameters)? else { return Ok(None) };
            let ids = by_row.columns.iter().map(|column| column.id);
            rows.push(Tuple::encode(ids.zip(made)).map_err(from_rowstore)?);
        }
        Ok(Some(StoredRows { rows, columns: Arc::clone(&by_row.columns) }))
    }

    /// Returns the rows that an INSERT puts into `table` in their stored form; `None` if arrays are needed.
    pub(super) fn compute_inserted_rows(
        &self,
        table: &Table,
        parameters: &[ScalarValue],
    ) -> SqlResult<Option<Vec<Tuple>>> {
        let Some(by_row) = &self.projection else { return Ok(None) };
        let is_written = matches!(self.source, RowSource::SingleRow | RowSource::Values(_));
        if !is_written || by_row.columns.len() < table.columns.len() {
            return Ok(None);
        }
        let Some(parameters) = scalars_to_values(parameters) else { return Ok(None) };
        let order = column_order(table);
        let mut rows = Vec::with_capacity(by_row.values_rows.len());
        for cells in &by_row.values_rows {
            let Some(row) = evaluate_all(cells, &parameters)? else { return Ok(None) };
            let Some(made) = by_row.project(row, &parameters)? else { return Ok(None) };
            let mut row = Vec::with_capacity(order.len());
            for at in &order {
                let (column, form) = (&table.columns[*at], &by_row.columns[*at].sql_type);
                let Some(value) = convert_to_column(made[*at], form, &column.sql_type)? else { return Ok(None) };
                row.push((column.id, value));
            }
            rows.push(Tuple::encode(row).map_err(from_rowstore)?);
        }
        Ok(Some(rows))
    }
}

/// Converts a value from the type `form` to that of a column: a numeric parameter has the scale that it was sent with.
/// `None` if arrays are needed.
fn convert_to_column<'a>(value: Value<'a>, form: &SqlType, column: &SqlType) -> SqlResult<Option<Value<'a>>> {
    Ok(match (value, form, column) {
        (Value::Null, _, _) => Some(Value::Null),
        (Value::Decimal(value), SqlType::Numeric { scale: from, .. }, SqlType::Numeric { precision, scale }) => {
            Some(Value::Decimal(rescale_numeric(value, *from, NumericPrecision::new(*precision, *scale))?))
        }
        (value, form, column) => (form.arrow_type() == column.arrow_type()).then_some(value),
    })
}

/// Returns the positions of a table's columns by ascending column id.
fn column_order(table: &Table) -> Vec<usize> {
    let mut order: Vec<usize> = (0..table.columns.len()).collect();
    if !table.columns.is_sorted_by_key(|column| column.id) {
        order.sort_unstable_by_key(|at| table.columns[*at].id);
    }
    order
}

/// Returns a SQL type whose values have this Arrow type; `None` for types that are not computed row by row.
pub(super) fn stored_type(form: &DataType) -> Option<SqlType> {
    if *form == DataType::Utf8 {
        return Some(SqlType::Text);
    }
    // Types that share an Arrow type also share the form of their values: any of them will do.
    let sql_type = match SqlType::from_arrow_type(form)? {
        SqlType::Unknown => SqlType::Text,
        sql_type => sql_type,
    };
    (is_computed_by_row(&sql_type) && (sql_type.arrow_type() == *form || *form == DataType::Null)).then_some(sql_type)
}

/// Returns whether values of a type, as an Arrow type implies it, are computed row by row.
#[deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it is computed by row or not")]
fn is_computed_by_row(sql_type: &SqlType) -> bool {
    match sql_type {
        SqlType::Bool
        | SqlType::Int2
        | SqlType::Int4
        | SqlType::Int8
        | SqlType::Float4
        | SqlType::Float8
        | SqlType::Text
        | SqlType::Date
        | SqlType::Time
        | SqlType::Timestamp
        | SqlType::TimestampTz
        | SqlType::Uuid
        | SqlType::Bytea
        | SqlType::Interval
        | SqlType::Numeric { .. } => true,
        // No Arrow type implies the others, except lists.
        SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::Json
        | SqlType::Jsonb
        | SqlType::Array(_)
        | SqlType::Oid
        | SqlType::Name
        | SqlType::InternalChar
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator
        | SqlType::Int2Vector
        | SqlType::OidVector
        | SqlType::Unknown => false,
    }
}
