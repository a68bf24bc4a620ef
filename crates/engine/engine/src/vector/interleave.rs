//! Rows of several columns as one column.

use std::sync::Arc;

use arrow::array::StringViewBuilder;
use types::ValueGuard;

use super::opaque;
use crate::{Bits, Bounds, Column, Data, Error, Form, Result};

/// Where texts are copied to, so much at a time.
const HEAP_BYTES: u32 = 1 << 20;

/// The picked rows in their order, each by the place of its column and its own. All columns are of the form.
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

/// Copied: the columns are of memory that is about to be used for others.
fn texts(columns: &[&Column], picks: &[(u32, u32)]) -> Result<Data> {
    let mut all = StringViewBuilder::with_capacity(picks.len()).with_fixed_block_size(HEAP_BYTES);
    let mut guard = ValueGuard::default();
    for (column, row) in picks {
        let (column, row) = (columns[*column as usize], *row as usize);
        let text = match &column.data {
            // What lies where a NULL is need not be there.
            _ if !column.is_valid(row) => "",
            Data::Texts(texts) => texts.value(row),
            Data::Codes { codes, strings } => {
                let code = codes[row] as usize;
                if strings.len() <= code {
                    return Err(Error::Form("a code without a string"));
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

/// The values of all columns.
fn all<'a, T>(columns: &[&'a Column], values: impl Fn(&'a Data) -> Option<T>) -> Result<Vec<T>> {
    columns.iter().map(|column| values(&column.data)).collect::<Option<Vec<T>>>().ok_or(OTHER_FORM)
}

fn picked<T: Copy>(values: &[&[T]], picks: &[(u32, u32)]) -> Vec<T> {
    picks.iter().map(|(column, row)| values[*column as usize][*row as usize]).collect()
}

const OTHER_FORM: Error = Error::Form("columns that are merged");
