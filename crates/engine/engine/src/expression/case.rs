//! CASE expressions: each branch is evaluated only for the rows that select it, so that a condition can guard a value
//! that would fail.

use std::sync::Arc;

use arrow::array::{StringViewArray, StringViewBuilder};
use types::ValueGuard;

use super::arithmetic::widened;
use super::computed::Computed;
use super::{Expression, Memory};
use crate::{Batch, Bits, Bounds, Column, Data, Error, Result, Selection};

/// Values of a branch and the rows that select it.
struct Branch {
    rows: Selection,
    column: Column,
}

/// Evaluates a CASE expression.
pub(super) fn choose(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Computed> {
    let mut left = Bits::all(batch.rows, true);
    let mut chosen: Vec<Branch> = Vec::with_capacity(branches.len() + 1);
    for (condition, value) in branches {
        let is_true = only(condition, &left, batch, memory)?;
        chosen.extend(branch(value, &is_true, batch, memory)?);
        left = left.and_not(&is_true);
    }
    if let Some(value) = otherwise {
        chosen.extend(branch(value, &left, batch, memory)?);
        left = Bits::all(batch.rows, false);
    }
    if let [Branch { rows: Selection::All, .. }] = chosen.as_slice() {
        return Ok(Computed::rows(chosen.remove(0).column));
    }
    let Some(first) = chosen.first() else {
        // All rows are NULL: evaluating a branch on an empty batch tells the physical type.
        let value = branches.first().map(|(_, value)| value).ok_or(Error::Form("a CASE expression has no branches"))?;
        let sample = value.evaluate(&none_of(batch)?, memory)?;
        return Ok(Computed::rows(sample.nulls_like(batch.rows)));
    };
    let data = match &first.column.data {
        Data::Bools(_) => bools(&chosen, batch.rows)?,
        Data::Ints { .. } | Data::Wide(_) => numbers(&chosen, batch.rows)?,
        Data::Floats(_) => floats(&chosen, batch.rows)?,
        Data::Codes { .. } | Data::Texts(_) => texts(&chosen, batch.rows)?,
        Data::Opaque(_) => return Err(Error::Form("a CASE expression has opaque values")),
    };
    let is_whole = left.count() == 0 && chosen.iter().all(|branch| branch.column.validity.is_none());
    let validity = (!is_whole).then(|| {
        let mut valid = Bits::all(batch.rows, false);
        for branch in &chosen {
            branch.each(|row, at| {
                if branch.column.is_valid(at) {
                    valid.set(row);
                }
            });
        }
        Arc::new(valid)
    });
    Ok(Computed::rows(Column { data, validity }))
}

/// Returns the rows among `asked` for which a condition is true; it is evaluated for no other rows.
fn only(condition: &Expression, asked: &Bits, batch: &Batch, memory: &mut Memory) -> Result<Bits> {
    match Selection::of(asked) {
        Selection::All => condition.is_true(batch, memory),
        Selection::Rows(rows) if rows.is_empty() => Ok(Bits::all(batch.rows, false)),
        Selection::Rows(rows) => {
            let found = condition.is_true(&part(batch, condition, &rows)?, memory)?;
            let mut is_true = Bits::all(batch.rows, false);
            found.ones().for_each(|at| is_true.set(rows[at] as usize));
            Ok(is_true)
        }
    }
}

/// Evaluates a branch for the wanted rows; returns `None` if there are none.
fn branch(value: &Expression, wanted: &Bits, batch: &Batch, memory: &mut Memory) -> Result<Option<Branch>> {
    let rows = Selection::of(wanted);
    let column = match &rows {
        Selection::All => value.evaluate(batch, memory)?,
        Selection::Rows(rows) if rows.is_empty() => return Ok(None),
        Selection::Rows(rows) => value.evaluate(&part(batch, value, rows)?, memory)?,
    };
    Ok(Some(Branch { rows, column }))
}

/// Gathers rows of the columns that an expression reads; the other columns are left empty.
fn part(batch: &Batch, expression: &Expression, rows: &[u32]) -> Result<Batch> {
    let mut used = Vec::new();
    expression.columns(&mut used);
    let absent = Column::new(Data::Bools(Arc::default()));
    let mut columns = vec![absent; batch.columns.len()];
    for at in used {
        columns[at] = batch.columns[at].take(rows)?;
    }
    Ok(Batch { rows: rows.len(), columns })
}

/// Returns a batch with the same columns and no rows.
fn none_of(batch: &Batch) -> Result<Batch> {
    batch.clone().select(&Selection::Rows(Vec::new()))
}

impl Branch {
    /// Calls `tell` with each row of the batch and its position in the branch's column.
    fn each(&self, mut tell: impl FnMut(usize, usize)) {
        match &self.rows {
            Selection::All => (0..self.column.rows()).for_each(|row| tell(row, row)),
            Selection::Rows(rows) => rows.iter().enumerate().for_each(|(at, row)| tell(*row as usize, at)),
        }
    }
}

fn bools(branches: &[Branch], rows: usize) -> Result<Data> {
    let mut values = Bits::all(rows, false);
    for branch in branches {
        let Data::Bools(bits) = &branch.column.data else { return Err(Error::Form("CASE branches differ in type")) };
        branch.each(|row, at| {
            if bits.get(at) {
                values.set(row);
            }
        });
    }
    Ok(Data::Bools(Arc::new(values)))
}

fn numbers(branches: &[Branch], rows: usize) -> Result<Data> {
    if branches.iter().any(|branch| matches!(branch.column.data, Data::Wide(_))) {
        let mut values = vec![0; rows];
        for branch in branches {
            let wide = widened(&branch.column.data)?;
            branch.each(|row, at| values[row] = wide[at]);
        }
        return Ok(Data::Wide(Arc::new(values)));
    }
    let (mut values, mut all) = (vec![0; rows], Bounds::of(0));
    for branch in branches {
        let Data::Ints { values: narrow, bounds } = &branch.column.data else {
            return Err(Error::Form("CASE branches differ in type"));
        };
        branch.each(|row, at| values[row] = narrow[at]);
        all = all.or(*bounds);
    }
    Ok(Data::Ints { values: Arc::new(values), bounds: all })
}

fn floats(branches: &[Branch], rows: usize) -> Result<Data> {
    let mut values = vec![0.0; rows];
    for branch in branches {
        let Data::Floats(floats) = &branch.column.data else { return Err(Error::Form("CASE branches differ in type")) };
        branch.each(|row, at| values[row] = floats[at]);
    }
    Ok(Data::Floats(Arc::new(values)))
}

fn texts(branches: &[Branch], rows: usize) -> Result<Data> {
    let mut strings: Vec<&str> = vec![""; rows];
    for branch in branches {
        match &branch.column.data {
            Data::Codes { codes, strings: all } if !all.is_empty() => {
                branch.each(|row, at| strings[row] = all.get(codes[at]));
            }
            Data::Codes { .. } => {}
            Data::Texts(texts) => branch.each(|row, at| strings[row] = texts.value(at)),
            _ => return Err(Error::Form("CASE branches differ in type")),
        }
    }
    let mut builder = StringViewBuilder::with_capacity(rows).with_deduplicate_strings();
    let mut guard = ValueGuard::default();
    for string in strings {
        guard.add(string.len())?;
        builder.append_value(string);
    }
    let texts: StringViewArray = builder.finish();
    Ok(Data::Texts(texts))
}
