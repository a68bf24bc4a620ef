//! Gathering of rows from several columns into one, as merging sorted runs needs it.

use std::sync::Arc;

use arrow::array::StringViewBuilder;
use types::ValueGuard;

use super::opaque;
use crate::{Bits, Bounds, Column, Data, Error, Form, Result};

/// Block size in bytes of the buffers that strings are copied to.
const HEAP_BYTES: u32 = 1 << 20;

/// Gathers the picked rows in order; a pick is the index of a column and a row in it. All columns have the given
/// physical type.
pub(crate) fn interleave(columns: &[&Column], picks: &[(u32, u32)], form: Form) -> Result<Column> {
    let is_valid = |pick: usize| {
        let (column, row) = picks[pick];
        columns[column as usize].is_valid(row as usize)
    };
    let has_nulls = columns.iter().any(|column| column.validity.is_some());
    let validity = has_nulls.then(|| Arc::new(Bits::of(picks.len(), is_valid)));
    let data = match form {
        Form::Bools => {
            let values = all(columns, |data| if let Data::Bools(bits) = data { Some(&**bits) } else { None })?;
            Data::Bools(Arc::new(Bits::of(picks.len(), |pick| {
                let (column, row) = picks[pick];
                values[column as usize].get(row as usize)
            })))
        }
        Form::Ints | Form::Wide => numbers(columns, picks)?,
        Form::Floats => {
            let values = all(columns, |data| if let Data::Floats(values) = data { Some(&***values) } else { None })?;
            Data::Floats(Arc::new(picked(&values, picks)))
        }
        Form::Texts => texts(columns, picks)?,
        Form::Opaque => {
            let arrays = all(columns, |data| if let Data::Opaque(array) = data { Some(array) } else { None })?;
            Data::Opaque(opaque::interleaved(&arrays, picks)?)
        }
    };
    Ok(Column { data, validity })
}

fn numbers(columns: &[&Column], picks: &[(u32, u32)]) -> Result<Data> {
    if columns.iter().any(|column| matches!(column.data, Data::Wide(_))) {
        let value = |(column, row): &(u32, u32)| match &columns[*column as usize].data {
            Data::Ints { values, .. } => Ok(values[*row as usize].into()),
            Data::Wide(values) => Ok(values[*row as usize]),
            _ => Err(OTHER_FORM),
        };
        return Ok(Data::Wide(Arc::new(picks.iter().map(value).collect::<Result<_>>()?)));
    }
    let values =
        all(columns, |data| if let Data::Ints { values, bounds } = data { Some((values, *bounds)) } else { None })?;
    let bounds = values.iter().map(|(_, bounds)| *bounds).reduce(Bounds::or).unwrap_or_else(|| Bounds::of(0));
    let values: Vec<&[i64]> = values.into_iter().map(|(values, _)| &***values).collect();
    Ok(Data::Ints { values: Arc::new(picked(&values, picks)), bounds })
}

/// Gathers strings into new buffers, because the source columns' memory is about to be reused.
fn texts(columns: &[&Column], picks: &[(u32, u32)]) -> Result<Data> {
    let mut all = StringViewBuilder::with_capacity(picks.len()).with_fixed_block_size(HEAP_BYTES);
    let mut guard = ValueGuard::default();
    for (column, row) in picks {
        let (column, row) = (columns[*column as usize], *row as usize);
        let text = match &column.data {
            // The placeholder of a NULL row need not be a valid index.
            _ if !column.is_valid(row) => "",
            Data::Texts(texts) => texts.value(row),
            Data::Codes { codes, strings } => {
                let code = codes[row] as usize;
                if strings.len() <= code {
                    return Err(Error::Form("a dictionary index is out of range"));
                }
                strings.values().value(code)
            }
            _ => return Err(OTHER_FORM),
        };
        guard.add(text.len())?;
        all.append_value(text);
    }
    Ok(Data::Texts(all.finish()))
}

/// Returns the values of all columns, or an error if one has another physical type.
fn all<'a, T>(columns: &[&'a Column], values: impl Fn(&'a Data) -> Option<T>) -> Result<Vec<T>> {
    columns.iter().map(|column| values(&column.data)).collect::<Option<Vec<T>>>().ok_or(OTHER_FORM)
}

/// Gathers the picked values.
fn picked<T: Copy>(values: &[&[T]], picks: &[(u32, u32)]) -> Vec<T> {
    picks.iter().map(|(column, row)| values[*column as usize][*row as usize]).collect()
}

const OTHER_FORM: Error = Error::Form("merged columns differ in their physical type");
