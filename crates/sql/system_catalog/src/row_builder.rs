//! Rows of a system table while they are computed: cells by column name, converted to Arrow arrays at the end.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringViewArray, TimestampMicrosecondArray, UInt32Array, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use cluster_model::OptionValue;
use types::{ColumnId, Oid, SqlError, SqlType};

use super::table_definition::ParsedTableDefinition;

/// One value, not yet converted to its column's type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Cell>),
}

/// Rows of one table, stored by column.
pub(super) struct RowBuilder {
    relation: Arc<ParsedTableDefinition>,
    column_positions: HashMap<&'static str, usize>,
    columns: Vec<Vec<Cell>>,
    row_count: usize,
    failure: Option<SqlError>,
}

/// Adds a row, with only the columns that differ from their defaults: `row!(rows, oid: 1, relname: "t")`. `..cells` at
/// the end adds columns whose names are computed.
macro_rules! row {
    ($rows:expr, $($name:ident : $value:expr),* $(,)?) => {
        $rows.add_row([$((stringify!($name), $crate::row_builder::Cell::from($value))),*])
    };
    ($rows:expr, $($name:ident : $value:expr),*, ..$cells:expr) => {
        $rows.add_row([$((stringify!($name), $crate::row_builder::Cell::from($value))),*].into_iter().chain($cells))
    };
}
pub(super) use row;

impl RowBuilder {
    pub(super) fn new(relation: &Arc<ParsedTableDefinition>) -> Self {
        let positions = relation.columns.iter().enumerate().map(|(at, column)| (column.name, at)).collect();
        let columns = vec![Vec::new(); relation.columns.len()];
        Self { relation: Arc::clone(relation), column_positions: positions, columns, row_count: 0, failure: None }
    }

    /// Records an error that prevents the rows from being computed; the first one is returned to the client.
    pub(super) fn fail(&mut self, error: SqlError) {
        self.failure.get_or_insert(error);
    }

    /// Takes the recorded error.
    pub(super) fn take_failure(&mut self) -> Option<SqlError> {
        self.failure.take()
    }

    /// Adds a row of the named cells; other columns get their defaults. Called by `row!`.
    pub(super) fn add_row(&mut self, cells: impl IntoIterator<Item = (&'static str, Cell)>) {
        for (name, cell) in cells {
            let at = self.column_positions.get(name.trim_start_matches("r#"));
            let at = *at.expect("a system table's row has only columns that the table declares");
            self.columns[at].push(cell);
        }
        self.row_count += 1;
        for (column, declared) in self.columns.iter_mut().zip(&self.relation.columns) {
            if column.len() < self.row_count {
                column.push(declared.default.clone());
            }
        }
    }

    /// Converts the rows to one batch.
    pub(super) fn finish(self) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns.into_iter().zip(&self.relation.columns);
        let mut arrays =
            arrays.map(|(cells, column)| to_array(cells, &column.sql_type)).collect::<Result<Vec<_>, _>>()?;
        if arrays.len() < self.relation.arrow_schema.fields().len() {
            arrays.push(Arc::new(UInt32Array::from_value(self.relation.definition.oid, self.row_count)));
        }
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(self.row_count));
        RecordBatch::try_new_with_options(Arc::clone(&self.relation.arrow_schema), arrays, &options)
    }
}

/// Converts `cells` to an Arrow array of `sql_type`.
pub(super) fn to_array(cells: Vec<Cell>, sql_type: &SqlType) -> Result<ArrayRef, ArrowError> {
    let wanted = sql_type.arrow_type();
    if let (Some(element), DataType::List(item)) = (sql_type.element(), &wanted) {
        return list_array(cells, &element, item);
    }
    Ok(match &wanted {
        DataType::Boolean => Arc::new(cells.iter().map(Cell::as_bool).collect::<BooleanArray>()),
        DataType::Int16 => Arc::new(cells.iter().map(Cell::as_number).collect::<Int16Array>()),
        DataType::Int32 => Arc::new(cells.iter().map(Cell::as_number).collect::<Int32Array>()),
        DataType::Int64 => Arc::new(cells.iter().map(Cell::as_number).collect::<Int64Array>()),
        DataType::UInt32 => Arc::new(cells.iter().map(Cell::as_number).collect::<UInt32Array>()),
        DataType::Float32 => {
            Arc::new(cells.iter().map(Cell::as_float).map(|v| v.map(to_f32)).collect::<Float32Array>())
        }
        DataType::Float64 => Arc::new(cells.iter().map(Cell::as_float).collect::<Float64Array>()),
        DataType::Utf8View => Arc::new(cells.iter().map(Cell::as_text).collect::<StringViewArray>()),
        DataType::Timestamp(_, zone) => {
            let values: TimestampMicrosecondArray = cells.iter().map(Cell::as_number).collect();
            Arc::new(values.with_timezone_opt(zone.clone()))
        }
        DataType::Decimal128(precision, scale) => {
            let values: Decimal128Array = cells.iter().map(Cell::as_number::<i128>).collect();
            cast(&values.with_precision_and_scale(38, 0)?, &DataType::Decimal128(*precision, *scale))?
        }
        DataType::Interval(_) => {
            let micros: arrow::array::DurationMicrosecondArray = cells.iter().map(Cell::as_number).collect();
            cast(&micros, &wanted)?
        }
        _ => new_null_array(&wanted, cells.len()),
    })
}

fn list_array(cells: Vec<Cell>, element: &SqlType, item: &arrow::datatypes::FieldRef) -> Result<ArrayRef, ArrowError> {
    let nulls: NullBuffer = cells.iter().map(|cell| !matches!(cell, Cell::Null)).collect();
    let lists: Vec<Vec<Cell>> =
        cells.into_iter().map(|cell| if let Cell::List(items) = cell { items } else { Vec::new() }).collect();
    let offsets = OffsetBuffer::from_lengths(lists.iter().map(Vec::len));
    let items = to_array(lists.into_iter().flatten().collect(), element)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, Some(nulls))?))
}

#[expect(clippy::cast_possible_truncation, reason = "a statistic shown as float4 may lose digits")]
fn to_f32(value: f64) -> f32 {
    value as f32
}

impl Cell {
    pub(super) fn as_bool(&self) -> Option<bool> {
        if let Cell::Bool(value) = self { Some(*value) } else { None }
    }

    /// Returns the number, if the cell is one and fits the type.
    pub(super) fn as_number<T: TryFrom<i64>>(&self) -> Option<T> {
        if let Cell::Int(value) = self { T::try_from(*value).ok() } else { None }
    }

    fn as_float(&self) -> Option<f64> {
        match self {
            Cell::Float(value) => Some(*value),
            #[expect(clippy::cast_precision_loss, reason = "a count shown as a float is an estimate")]
            Cell::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        if let Cell::Text(value) = self { Some(value) } else { None }
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

macro_rules! cell_from_integer {
    ($($integer:ty),*) => {
        $(impl From<$integer> for Cell {
            fn from(value: $integer) -> Self {
                Cell::Int(i64::from(value))
            }
        })*
    };
}
cell_from_integer!(u8, i16, u16, i32, u32, i64);

impl From<u64> for Cell {
    fn from(value: u64) -> Self {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Float(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(value: &String) -> Self {
        Cell::Text(value.clone())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl From<OptionValue> for Cell {
    fn from(value: OptionValue) -> Self {
        match value {
            OptionValue::Null => Cell::Null,
            OptionValue::Boolean(value) => Cell::Bool(value),
            OptionValue::Number(number) => Cell::Int(number),
            OptionValue::Name(name) => Cell::Text(name),
        }
    }
}

impl From<Oid> for Cell {
    fn from(value: Oid) -> Self {
        Cell::Int(i64::from(value.0))
    }
}

impl From<ColumnId> for Cell {
    fn from(value: ColumnId) -> Self {
        Cell::Int(i64::from(value.0))
    }
}

impl<T> From<Option<T>> for Cell
where
    Cell: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Cell::from)
    }
}

impl<T> From<Vec<T>> for Cell
where
    Cell: From<T>,
{
    fn from(values: Vec<T>) -> Self {
        Cell::List(values.into_iter().map(Cell::from).collect())
    }
}
