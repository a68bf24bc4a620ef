//! Functions over Arrow arrays. A function of one column with few possible values is computed once per possible
//! value.

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

/// Function over Arrow arrays, for functions that the engine has no loop for.
pub trait Foreign: fmt::Debug + Send + Sync {
    /// Returns an id that is unique among the functions of this process.
    fn id(&self) -> u64;

    /// Returns the Arrow types of the arguments.
    fn takes(&self) -> &[DataType];

    /// Computes the values for arguments of `rows` rows.
    ///
    /// # Errors
    /// Returns the function's own errors.
    fn call(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef>;

    /// Returns whether equal arguments always give equal results.
    fn is_immutable(&self) -> bool;

    /// Returns the call as SQL text, for EXPLAIN.
    fn sql(&self) -> String;

    /// Returns a digest of the call, given digests of its arguments, that is valid across statements; `None` if the
    /// result depends on more than the arguments.
    fn digest(&self, _arguments: &[Digest]) -> Option<Digest> {
        None
    }
}

/// Maximum bytes of a cached result table; a worker may have one per dictionary.
const TABLE_BYTES_MAX: usize = 4 << 20;

/// Maximum number of integers in a domain whose results are cached: as dates, about 45 years.
const DOMAIN_MAX: i128 = 1 << 14;

/// Evaluates the arguments and calls the function, measuring its time.
pub(super) fn call(
    function: &Arc<dyn Foreign>,
    arguments: &[Expression],
    batch: &Batch,
    memory: &mut Memory,
) -> Result<Computed> {
    let computed = arguments.iter().map(|argument| argument.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
    memory.timed(|memory| called(function, computed, batch.rows, memory))
}

/// Calls the function on computed arguments, through a cached result table if possible.
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

/// Evaluates the function by looking up its results for all values that the column can have. Returns `None` if these
/// are too many, or if the function fails for one of them.
fn by_table(function: &Arc<dyn Foreign>, column: &Column, memory: &mut Memory) -> Result<Option<Computed>> {
    let form = function.takes().first().ok_or(Error::Form("a function with an argument declares no argument type"))?;
    let (domain, places) = match &column.data {
        Data::Codes { codes, strings } if strings.len() <= codes.len().max(64) * 16 => {
            let null = u32::try_from(strings.len()).map_err(|_| Error::Form("a dictionary is too large"))?;
            let place = |row: usize| if column.is_valid(row) { codes[row] } else { null };
            let places = match &column.validity {
                None => Cow::Borrowed(codes.as_slice()),
                Some(_) => (0..codes.len()).map(place).collect(),
            };
            (Domain::Strings(strings.id()), places)
        }
        Data::Ints { values, bounds } if bounds.max - bounds.min <= DOMAIN_MAX && bounds.are_narrow() => {
            let first = i64::try_from(bounds.min).map_err(|_| Error::Form("the lower bound exceeds 64 bits"))?;
            let last = i64::try_from(bounds.max).map_err(|_| Error::Form("the upper bound exceeds 64 bits"))?;
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

/// Returns all values of a column's domain, followed by NULL.
fn values_of(domain: Domain, data: &Data, form: &DataType) -> Result<ArrayRef> {
    match (domain, data) {
        (Domain::Strings(_), Data::Codes { strings, .. }) => {
            Ok(concat(&[strings.values(), &StringViewArray::from(vec![None::<&str>])])?)
        }
        (Domain::Integers(first, last), _) => {
            let domain: Int64Array = (first..=last).map(Some).chain([None]).collect();
            arrow_form::array(&arrow_form::column(&(Arc::new(domain) as ArrayRef))?, form)
        }
        (Domain::Strings(_), _) => Err(Error::Form("a dictionary's domain was computed for another column")),
    }
}

/// Computes the function for all values of a domain.
fn table(function: &Arc<dyn Foreign>, domain: &ArrayRef, form: &DataType) -> Result<Column> {
    if domain.data_type() != form {
        return Err(Error::Form("a domain's values have another type than the function's argument"));
    }
    let values = function.call(std::slice::from_ref(domain), domain.len())?;
    arrow_form::codes_of(arrow_form::column(&values)?)
}
