//! CASE expressions: each branch is evaluated only for the rows that select it, so that a condition can guard a value
//! that would fail.

use std::sync::Arc;

use arrow::array::{StringViewArray, StringViewBuilder};
use types::ValueMemoryCounter;

use super::arithmetic::to_wide;
use super::columnar_value::ColumnarValue;
use super::{Expression, ExpressionState};
use crate::{Batch, Bitmap, Bounds, Column, ColumnData, Error, Result, Selection};

/// Values of a branch and the rows that select it.
struct Branch {
    rows: Selection,
    column: Column,
}

/// Evaluates a CASE expression.
pub(super) fn evaluate_case(
    branches: &[(Expression, Expression)],
    otherwise: Option<&Expression>,
    batch: &Batch,
    memory: &mut ExpressionState,
) -> Result<ColumnarValue> {
    let mut remaining = Bitmap::filled(batch.rows, true);
    let mut chosen: Vec<Branch> = Vec::with_capacity(branches.len() + 1);
    for (condition, value) in branches {
        let is_true = true_rows_among(condition, &remaining, batch, memory)?;
        chosen.extend(evaluate_branch(value, &is_true, batch, memory)?);
        remaining = remaining.and_not(&is_true);
    }
    if let Some(value) = otherwise {
        chosen.extend(evaluate_branch(value, &remaining, batch, memory)?);
        remaining = Bitmap::filled(batch.rows, false);
    }
    if let [Branch { rows: Selection::All, .. }] = chosen.as_slice() {
        return Ok(ColumnarValue::from_column(chosen.remove(0).column));
    }
    let Some(first) = chosen.first() else {
        // All rows are NULL: evaluating a branch on an empty batch tells the physical type.
        let value =
            branches.first().map(|(_, value)| value).ok_or(Error::Internal("a CASE expression has no branches"))?;
        let sample = value.evaluate(&empty_like(batch)?, memory)?;
        return Ok(ColumnarValue::from_column(sample.nulls_like(batch.rows)));
    };
    let data = match &first.column.data {
        ColumnData::Bools(_) => bools(&chosen, batch.rows)?,
        ColumnData::Ints { .. } | ColumnData::WideInts(_) => numbers(&chosen, batch.rows)?,
        ColumnData::Floats(_) => floats(&chosen, batch.rows)?,
        ColumnData::Dictionary { .. } | ColumnData::Texts(_) => texts(&chosen, batch.rows)?,
        ColumnData::Opaque(_) => {
            return Err(Error::Internal(
                "the values of a CASE expression have a type that the engine cannot compute with",
            ));
        }
    };
    let is_whole = remaining.count_ones() == 0 && chosen.iter().all(|branch| branch.column.validity.is_none());
    let validity = (!is_whole).then(|| {
        let mut valid = Bitmap::filled(batch.rows, false);
        for branch in &chosen {
            branch.for_each_row(|row, at| {
                if branch.column.is_valid(at) {
                    valid.set(row);
                }
            });
        }
        Arc::new(valid)
    });
    Ok(ColumnarValue::from_column(Column { data, validity }))
}

/// Returns the rows among `asked` for which a condition is true; it is evaluated for no other rows.
fn true_rows_among(
    condition: &Expression,
    asked: &Bitmap,
    batch: &Batch,
    memory: &mut ExpressionState,
) -> Result<Bitmap> {
    match Selection::from_bitmap(asked) {
        Selection::All => condition.is_true(batch, memory),
        Selection::Rows(rows) if rows.is_empty() => Ok(Bitmap::filled(batch.rows, false)),
        Selection::Rows(rows) => {
            let found = condition.is_true(&gather_used_columns(batch, condition, &rows)?, memory)?;
            let mut is_true = Bitmap::filled(batch.rows, false);
            found.ones().for_each(|at| is_true.set(rows[at] as usize));
            Ok(is_true)
        }
    }
}

/// Evaluates a branch for the wanted rows; returns `None` if there are none.
fn evaluate_branch(
    value: &Expression,
    wanted: &Bitmap,
    batch: &Batch,
    memory: &mut ExpressionState,
) -> Result<Option<Branch>> {
    let rows = Selection::from_bitmap(wanted);
    let column = match &rows {
        Selection::All => value.evaluate(batch, memory)?,
        Selection::Rows(rows) if rows.is_empty() => return Ok(None),
        Selection::Rows(rows) => value.evaluate(&gather_used_columns(batch, value, rows)?, memory)?,
    };
    Ok(Some(Branch { rows, column }))
}

/// Gathers rows of the columns that an expression reads; the other columns are left empty.
fn gather_used_columns(batch: &Batch, expression: &Expression, rows: &[u32]) -> Result<Batch> {
    let mut used = Vec::new();
    expression.collect_columns(&mut used);
    let absent = Column::new(ColumnData::Bools(Arc::default()));
    let mut columns = vec![absent; batch.columns.len()];
    for at in used {
        columns[at] = batch.columns[at].take(rows)?;
    }
    Ok(Batch { rows: rows.len(), columns })
}

/// Returns a batch with the same columns and no rows.
fn empty_like(batch: &Batch) -> Result<Batch> {
    batch.clone().select(&Selection::Rows(Vec::new()))
}

impl Branch {
    /// Calls `tell` with each row of the batch and its position in the branch's column.
    fn for_each_row(&self, mut tell: impl FnMut(usize, usize)) {
        match &self.rows {
            Selection::All => (0..self.column.rows()).for_each(|row| tell(row, row)),
            Selection::Rows(rows) => rows.iter().enumerate().for_each(|(at, row)| tell(*row as usize, at)),
        }
    }
}

fn bools(branches: &[Branch], rows: usize) -> Result<ColumnData> {
    let mut values = Bitmap::filled(rows, false);
    for branch in branches {
        let ColumnData::Bools(bits) = &branch.column.data else {
            return Err(Error::Internal("CASE branches differ in type"));
        };
        branch.for_each_row(|row, at| {
            if bits.get(at) {
                values.set(row);
            }
        });
    }
    Ok(ColumnData::Bools(Arc::new(values)))
}

fn numbers(branches: &[Branch], rows: usize) -> Result<ColumnData> {
    if branches.iter().any(|branch| matches!(branch.column.data, ColumnData::WideInts(_))) {
        let mut values = vec![0; rows];
        for branch in branches {
            let wide = to_wide(&branch.column.data)?;
            branch.for_each_row(|row, at| values[row] = wide[at]);
        }
        return Ok(ColumnData::WideInts(Arc::new(values)));
    }
    let (mut values, mut all) = (vec![0; rows], Bounds::from_value(0));
    for branch in branches {
        let ColumnData::Ints { values: narrow, bounds } = &branch.column.data else {
            return Err(Error::Internal("CASE branches differ in type"));
        };
        branch.for_each_row(|row, at| values[row] = narrow[at]);
        all = all.union(*bounds);
    }
    Ok(ColumnData::Ints { values: Arc::new(values), bounds: all })
}

fn floats(branches: &[Branch], rows: usize) -> Result<ColumnData> {
    let mut values = vec![0.0; rows];
    for branch in branches {
        let ColumnData::Floats(floats) = &branch.column.data else {
            return Err(Error::Internal("CASE branches differ in type"));
        };
        branch.for_each_row(|row, at| values[row] = floats[at]);
    }
    Ok(ColumnData::Floats(Arc::new(values)))
}

fn texts(branches: &[Branch], rows: usize) -> Result<ColumnData> {
    let mut strings: Vec<&str> = vec![""; rows];
    for branch in branches {
        match &branch.column.data {
            ColumnData::Dictionary { indices: codes, dictionary: all } if !all.is_empty() => {
                branch.for_each_row(|row, at| strings[row] = all.get(codes[at]));
            }
            ColumnData::Dictionary { .. } => {}
            ColumnData::Texts(texts) => branch.for_each_row(|row, at| strings[row] = texts.value(at)),
            _ => return Err(Error::Internal("CASE branches differ in type")),
        }
    }
    let mut builder = StringViewBuilder::with_capacity(rows).with_deduplicate_strings();
    let mut guard = ValueMemoryCounter::default();
    for string in strings {
        guard.add(string.len())?;
        builder.append_value(string);
    }
    let texts: StringViewArray = builder.finish();
    Ok(ColumnData::Texts(texts))
}
