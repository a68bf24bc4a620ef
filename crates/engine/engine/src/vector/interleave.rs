//! Gathering of rows from several columns into one, as merging sorted runs needs it.

use std::sync::Arc;

use arrow::array::StringViewBuilder;
use types::ValueMemoryCounter;

use super::opaque_arrays;
use crate::{Bitmap, Bounds, Column, ColumnData, Error, PhysicalType, Result};

/// Block size in bytes of the buffers that strings are copied to.
const STRING_BLOCK_BYTES: u32 = 1 << 20;

/// Gathers the picked rows in order; a pick is the index of a column and a row in it. All columns have the given
/// physical type.
pub(crate) fn interleave(columns: &[&Column], picks: &[(u32, u32)], form: PhysicalType) -> Result<Column> {
    let is_valid = |pick: usize| {
        let (column, row) = picks[pick];
        columns[column as usize].is_valid(row as usize)
    };
    let has_nulls = columns.iter().any(|column| column.validity.is_some());
    let validity = has_nulls.then(|| Arc::new(Bitmap::from_fn(picks.len(), is_valid)));
    let data = match form {
        PhysicalType::Bools => {
            let values =
                all_data(columns, |data| if let ColumnData::Bools(bits) = data { Some(&**bits) } else { None })?;
            ColumnData::Bools(Arc::new(Bitmap::from_fn(picks.len(), |pick| {
                let (column, row) = picks[pick];
                values[column as usize].get(row as usize)
            })))
        }
        PhysicalType::Ints | PhysicalType::WideInts => numbers(columns, picks)?,
        PhysicalType::Floats => {
            let values =
                all_data(columns, |data| if let ColumnData::Floats(values) = data { Some(&***values) } else { None })?;
            ColumnData::Floats(Arc::new(gather(&values, picks)))
        }
        PhysicalType::Texts => texts(columns, picks)?,
        PhysicalType::Opaque => {
            let arrays =
                all_data(columns, |data| if let ColumnData::Opaque(array) = data { Some(array) } else { None })?;
            ColumnData::Opaque(opaque_arrays::interleave_arrays(&arrays, picks)?)
        }
    };
    Ok(Column { data, validity })
}

fn numbers(columns: &[&Column], picks: &[(u32, u32)]) -> Result<ColumnData> {
    if columns.iter().any(|column| matches!(column.data, ColumnData::WideInts(_))) {
        let value = |(column, row): &(u32, u32)| match &columns[*column as usize].data {
            ColumnData::Ints { values, .. } => Ok(values[*row as usize].into()),
            ColumnData::WideInts(values) => Ok(values[*row as usize]),
            _ => Err(TYPE_MISMATCH),
        };
        return Ok(ColumnData::WideInts(Arc::new(picks.iter().map(value).collect::<Result<_>>()?)));
    }
    let values =
        all_data(
            columns,
            |data| if let ColumnData::Ints { values, bounds } = data { Some((values, *bounds)) } else { None },
        )?;
    let bounds =
        values.iter().map(|(_, bounds)| *bounds).reduce(Bounds::union).unwrap_or_else(|| Bounds::from_value(0));
    let values: Vec<&[i64]> = values.into_iter().map(|(values, _)| &***values).collect();
    Ok(ColumnData::Ints { values: Arc::new(gather(&values, picks)), bounds })
}

/// Gathers strings into new buffers, because the source columns' memory is about to be reused.
fn texts(columns: &[&Column], picks: &[(u32, u32)]) -> Result<ColumnData> {
    let mut all = StringViewBuilder::with_capacity(picks.len()).with_fixed_block_size(STRING_BLOCK_BYTES);
    let mut guard = ValueMemoryCounter::default();
    for (column, row) in picks {
        let (column, row) = (columns[*column as usize], *row as usize);
        let text = match &column.data {
            // The placeholder of a NULL row need not be a valid index.
            _ if !column.is_valid(row) => "",
            ColumnData::Texts(texts) => texts.value(row),
            ColumnData::Dictionary { indices: codes, dictionary: strings } => {
                let code = codes[row] as usize;
                if strings.len() <= code {
                    return Err(Error::Internal("a dictionary index is out of range"));
                }
                strings.values().value(code)
            }
            _ => return Err(TYPE_MISMATCH),
        };
        guard.add(text.len())?;
        all.append_value(text);
    }
    Ok(ColumnData::Texts(all.finish()))
}

/// Returns the values of all columns, or an error if one has another physical type.
fn all_data<'a, T>(columns: &[&'a Column], values: impl Fn(&'a ColumnData) -> Option<T>) -> Result<Vec<T>> {
    columns.iter().map(|column| values(&column.data)).collect::<Option<Vec<T>>>().ok_or(TYPE_MISMATCH)
}

/// Gathers the picked values.
fn gather<T: Copy>(values: &[&[T]], picks: &[(u32, u32)]) -> Vec<T> {
    picks.iter().map(|(column, row)| values[*column as usize][*row as usize]).collect()
}

const TYPE_MISMATCH: Error = Error::Internal("merged columns differ in their physical type");
