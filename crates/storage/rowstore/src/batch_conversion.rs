//! Conversion of batches of Arrow columns to stored rows and back.

use arrow::array::{Array, ArrayRef};
use types::{ColumnId, SqlType};

use crate::{ColumnBuilder, ColumnValues, Error, Result, Tuple, TupleReader, TupleWriter, Value};

#[cfg(test)]
mod tests;

/// Converts columns to stored rows. `ids` are the columns' ids in ascending order.
pub fn encode_rows(columns: &[ArrayRef], ids: &[ColumnId]) -> Result<Vec<Tuple>> {
    let values = ColumnValues::for_columns(columns)?;
    let rows = columns.first().map_or(0, |column| column.len());
    let mut writer = TupleWriter::default();
    (0..rows)
        .map(|row| {
            for (id, values) in ids.iter().zip(&values) {
                writer.push(*id, values.get(row))?;
            }
            writer.finish()
        })
        .collect()
}

/// A column to read from stored rows.
#[derive(Debug, Clone)]
pub struct StoredColumn {
    pub id: ColumnId,
    pub sql_type: SqlType,
    /// Value for rows that are older than the column, as an array of length 1; `None` for NULL.
    pub default_value: Option<ArrayRef>,
}

impl StoredColumn {
    /// Returns the column's value in a row.
    pub fn value_in<'a>(&'a self, row: TupleReader<'a>) -> Result<Value<'a>> {
        match (row.get(self.id), &self.default_value) {
            (Some(value), _) => Ok(value),
            (None, Some(array)) if array.is_empty() => {
                Err(Error::Damaged("the stored default of an added column is an empty array"))
            }
            (None, Some(array)) => Value::from_array(array.as_ref(), 0),
            (None, None) => Ok(Value::Null),
        }
    }
}

/// Converts stored rows to Arrow columns, with memory reserved for `capacity` rows.
pub fn decode_columns<'a>(
    rows: impl IntoIterator<Item = &'a Tuple>,
    columns: &[StoredColumn],
    capacity: usize,
) -> Result<Vec<ArrayRef>> {
    let mut builder = BatchBuilder::new(columns, capacity)?;
    for row in rows {
        builder.push(row.reader())?;
    }
    Ok(builder.finish())
}

/// Builder of Arrow columns from stored rows. After an error it must not be used any more.
#[derive(Debug)]
pub struct BatchBuilder<'a> {
    columns: Vec<ColumnDecoder<'a>>,
    rows: usize,
}

#[derive(Debug)]
struct ColumnDecoder<'a> {
    id: ColumnId,
    /// Position of the column in the previous row, tried first in the next row.
    last_position: usize,
    default_value: Value<'a>,
    values: ColumnBuilder,
}

impl<'a> BatchBuilder<'a> {
    /// Creates a builder of `columns` with memory reserved for `capacity` rows.
    pub fn new(columns: &'a [StoredColumn], capacity: usize) -> Result<BatchBuilder<'a>> {
        let columns = columns
            .iter()
            .map(|StoredColumn { id, sql_type, default_value: missing }| {
                let missing = match missing {
                    Some(array) if array.is_empty() => {
                        return Err(Error::Damaged("the stored default of an added column is an empty array"));
                    }
                    Some(array) => Value::from_array(array.as_ref(), 0)?,
                    None => Value::Null,
                };
                Ok(ColumnDecoder {
                    id: *id,
                    last_position: 0,
                    default_value: missing,
                    values: ColumnBuilder::new(sql_type, capacity)?,
                })
            })
            .collect::<Result<_>>()?;
        Ok(BatchBuilder { columns, rows: 0 })
    }

    /// Adds a row.
    pub fn push(&mut self, row: TupleReader<'_>) -> Result<()> {
        for column in &mut self.columns {
            let value = match row.find(column.id, column.last_position) {
                Some(position) => {
                    column.last_position = position;
                    row.value(position)
                }
                None => column.default_value,
            };
            column.values.append(value)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Returns the number of rows added since the start or the last [`BatchBuilder::finish`].
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns and resets the builder.
    pub fn finish(&mut self) -> Vec<ArrayRef> {
        self.rows = 0;
        self.columns.iter_mut().map(|column| column.values.finish()).collect()
    }
}
