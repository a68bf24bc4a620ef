//! Functions over Arrow's arrays, called once for each value that there can be where these are few.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;

use super::memory::{Domain, looked_up};
use super::{Computed, Expression, Memory};
use crate::arrow_form;
use crate::{Batch, Column, Data, Error, Result};

/// A function that the engine has no loop for.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// A number that no other function of the process has.
    fn id(&self) -> u64;

    /// The Arrow types of its arguments.
    fn takes(&self) -> &[DataType];

    /// Its values for arrays of `rows` rows.
    ///
    /// # Errors
    /// Its own.
    fn call(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef>;

    /// Whether equal arguments give equal values, always.
    fn is_immutable(&self) -> bool;
}

/// Integers that are worth a table: a few years' days.
const DOMAIN_MAX: i128 = 1 << 14;

pub(super) fn call(
    function: &Arc<dyn Foreign>,
    arguments: &[Expression],
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Computed> {
    let computed = arguments.iter().map(|argument| argument.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
    if let [argument] = computed.as_slice()
        && !argument.is_scalar
        && function.is_immutable()
        && let Some(found) = by_table(function, &argument.column, memory)?
    {
        return Ok(found);
    }
    let is_scalar =
        !computed.is_empty() && function.is_immutable() && computed.iter().all(|argument| argument.is_scalar);
    let rows = if is_scalar { 1 } else { batch.rows };
    let arrays = computed.into_iter().zip(function.takes()).map(|(argument, form)| {
        let column = if is_scalar { argument.column } else { argument.into_column(rows)? };
        arrow_form::array(&column, form)
    });
    let values = function.call(&arrays.collect::<Result<Vec<_>>>()?, rows)?;
    Ok(Computed { column: arrow_form::column(&values)?, is_scalar })
}

/// By what the function gives for all values that the column can have; `None` where these are too many, or one of them fails.
fn by_table(function: &Arc<dyn Foreign>, column: &Column, memory: &mut Memory) -> Result<Option<Computed>> {
    let form = function.takes().first().ok_or(Error::Form("a function of nothing"))?;
    match &column.data {
        Data::Codes { codes, strings } if strings.len() <= codes.len().max(64) * 16 => {
            let null = u32::try_from(strings.len()).map_err(|_| Error::Form("too many strings"))?;
            let make = || {
                let none = StringViewArray::from(vec![None::<&str>]);
                let domain = concat(&[strings.values(), &none])?;
                table(function, &domain, form)
            };
            let Ok(table) = memory.table(function.id(), Domain::Strings(strings.id()), make) else { return Ok(None) };
            if column.validity.is_none() {
                return looked_up(table, codes).map(Some);
            }
            let place = |row: usize| if column.is_valid(row) { codes[row] } else { null };
            looked_up(table, &(0..codes.len()).map(place).collect::<Vec<_>>()).map(Some)
        }
        Data::Ints { values, bounds } if bounds.max - bounds.min <= DOMAIN_MAX && bounds.are_narrow() => {
            let first = i64::try_from(bounds.min).map_err(|_| Error::Form("bounds"))?;
            let last = i64::try_from(bounds.max).map_err(|_| Error::Form("bounds"))?;
            let make = || {
                let domain: Int64Array = (first..=last).map(Some).chain([None]).collect();
                let domain = arrow_form::column(&(Arc::new(domain) as ArrayRef))?;
                table(function, &arrow_form::array(&domain, form)?, form)
            };
            let Ok(table) = memory.table(function.id(), Domain::Integers(first, last), make) else { return Ok(None) };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "values lie within their bounds"
            )]
            let place = |row: usize| {
                if column.is_valid(row) { (values[row] - first) as u32 } else { (last - first) as u32 + 1 }
            };
            looked_up(table, &(0..values.len()).map(place).collect::<Vec<_>>()).map(Some)
        }
        _ => Ok(None),
    }
}

fn table(function: &Arc<dyn Foreign>, domain: &ArrayRef, form: &DataType) -> Result<Column> {
    if domain.data_type() != form {
        return Err(Error::Form("an argument of another type"));
    }
    let values = function.call(std::slice::from_ref(domain), domain.len())?;
    arrow_form::codes_of(arrow_form::column(&values)?)
}
