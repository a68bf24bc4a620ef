//! Functions over Arrow's arrays, called once for each value that there can be where these are few.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use types::value_guard;

use super::computed::Computed;
use super::memory::{Domain, looked_up};
use super::{Expression, Memory};
use crate::arrow_form;
use crate::{Batch, Column, Data, Digest, Error, Result};

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

    /// As SQL, for people.
    fn sql(&self) -> String;

    /// What it computes of arguments that are known by what they hold, in whatever statement; `None` where that is not known.
    fn digest(&self, _arguments: &[Digest]) -> Option<Digest> {
        None
    }
}

/// Tables of larger values are not made: a worker has one for each dictionary.
const TABLE_BYTES_MAX: usize = 4 << 20;

/// Integers that are worth a table: a few years' days.
const DOMAIN_MAX: i128 = 1 << 14;

pub(super) fn call(
    function: &Arc<dyn Foreign>,
    arguments: &[Expression],
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Computed> {
    let computed = arguments.iter().map(|argument| argument.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
    memory.timed(|memory| called(function, computed, batch.rows, memory))
}

fn called(function: &Arc<dyn Foreign>, computed: Vec<Computed>, rows: usize, memory: &mut Memory) -> Result<Computed> {
    if let [argument] = computed.as_slice()
        && !argument.is_scalar
        && function.is_immutable()
        && !memory.has_none(function.id())
        && let Some(found) = by_table(function, &argument.column, memory)?
    {
        return Ok(found);
    }
    let is_scalar =
        !computed.is_empty() && function.is_immutable() && computed.iter().all(|argument| argument.is_scalar);
    let rows = if is_scalar { 1 } else { rows };
    let arrays = computed.into_iter().zip(function.takes()).map(|(argument, form)| {
        let column = if is_scalar { argument.column } else { argument.into_column(rows)? };
        arrow_form::array(&column, form)
    });
    let values = function.call(&arrays.collect::<Result<Vec<_>>>()?, rows)?;
    memory.count(rows);
    Ok(Computed { column: arrow_form::column(&values)?, is_scalar })
}

/// By what the function gives for all values that the column can have; `None` where these are too many, or one of them fails.
fn by_table(function: &Arc<dyn Foreign>, column: &Column, memory: &mut Memory) -> Result<Option<Computed>> {
    let form = function.takes().first().ok_or(Error::Form("a function of nothing"))?;
    let (domain, places) = match &column.data {
        Data::Codes { codes, strings } if strings.len() <= codes.len().max(64) * 16 => {
            let null = u32::try_from(strings.len()).map_err(|_| Error::Form("too many strings"))?;
            let place = |row: usize| if column.is_valid(row) { codes[row] } else { null };
            let places = match &column.validity {
                None => Cow::Borrowed(codes.as_slice()),
                Some(_) => (0..codes.len()).map(place).collect(),
            };
            (Domain::Strings(strings.id()), places)
        }
        Data::Ints { values, bounds } if bounds.max - bounds.min <= DOMAIN_MAX && bounds.are_narrow() => {
            let first = i64::try_from(bounds.min).map_err(|_| Error::Form("bounds"))?;
            let last = i64::try_from(bounds.max).map_err(|_| Error::Form("bounds"))?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "values lie within their bounds"
            )]
            let place = |row: usize| {
                if column.is_valid(row) { (values[row] - first) as u32 } else { (last - first) as u32 + 1 }
            };
            (Domain::Integers(first, last), (0..values.len()).map(place).collect())
        }
        _ => return Ok(None),
    };
    let (computed, is_too_large) = (Cell::new(0), Cell::new(false));
    let make = || {
        let values = values_of(domain, &column.data, form)?;
        computed.set(values.len());
        let (table, is_too_much) = value_guard::within(TABLE_BYTES_MAX, || table(function, &values, form));
        is_too_large.set(is_too_much);
        table
    };
    let Ok(table) = memory.table(function.id(), domain, make) else {
        if is_too_large.get() {
            memory.make_none(function.id());
        }
        return Ok(None);
    };
    let found = looked_up(table, &places)?;
    memory.count(computed.get());
    Ok(Some(found))
}

/// All values of a column's domain, then NULL.
fn values_of(domain: Domain, data: &Data, form: &DataType) -> Result<ArrayRef> {
    match (domain, data) {
        (Domain::Strings(_), Data::Codes { strings, .. }) => {
            Ok(concat(&[strings.values(), &StringViewArray::from(vec![None::<&str>])])?)
        }
        (Domain::Integers(first, last), _) => {
            let domain: Int64Array = (first..=last).map(Some).chain([None]).collect();
            arrow_form::array(&arrow_form::column(&(Arc::new(domain) as ArrayRef))?, form)
        }
        (Domain::Strings(_), _) => Err(Error::Form("strings without a dictionary")),
    }
}

fn table(function: &Arc<dyn Foreign>, domain: &ArrayRef, form: &DataType) -> Result<Column> {
    if domain.data_type() != form {
        return Err(Error::Form("an argument of another type"));
    }
    let values = function.call(std::slice::from_ref(domain), domain.len())?;
    arrow_form::codes_of(arrow_form::column(&values)?)
}
