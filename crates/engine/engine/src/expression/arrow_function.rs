//! Functions over Arrow arrays. A function of one column with few possible values is computed once per possible
//! value.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::compute::concat;
use arrow::datatypes::DataType;
use types::value_memory;

use super::columnar_value::ColumnarValue;
use super::evaluation_state::{ArgumentDomain, look_up};
use super::{Expression, ExpressionState};
use crate::arrow_convert;
use crate::{Batch, Column, ColumnData, Digest, Error, Result};

/// Function over Arrow arrays, for functions that the engine has no loop for.
pub trait ArrowFunction: fmt::Debug + Send + Sync {
    /// Returns an id that is unique among the functions of this process.
    fn id(&self) -> u64;

    /// Returns the Arrow types of the arguments.
    fn argument_types(&self) -> &[DataType];

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
const CACHED_DOMAIN_MAX: i128 = 1 << 14;

/// Evaluates the arguments and calls the function, measuring its time.
pub(super) fn call(
    function: &Arc<dyn ArrowFunction>,
    arguments: &[Expression],
    batch: &Batch,
    memory: &mut ExpressionState,
) -> Result<ColumnarValue> {
    let computed = arguments.iter().map(|argument| argument.compute(batch, memory)).collect::<Result<Vec<_>>>()?;
    memory.time_call(|memory| call_computed(function, computed, batch.rows, memory))
}

/// Calls the function on computed arguments, through a cached result table if possible.
fn call_computed(
    function: &Arc<dyn ArrowFunction>,
    computed: Vec<ColumnarValue>,
    rows: usize,
    memory: &mut ExpressionState,
) -> Result<ColumnarValue> {
    if let [argument] = computed.as_slice()
        && !argument.is_scalar
        && function.is_immutable()
        && !memory.is_uncached(function.id())
        && let Some(found) = call_by_table(function, &argument.column, memory)?
    {
        return Ok(found);
    }
    let is_scalar =
        !computed.is_empty() && function.is_immutable() && computed.iter().all(|argument| argument.is_scalar);
    let rows = if is_scalar { 1 } else { rows };
    let arrays = computed.into_iter().zip(function.argument_types()).map(|(argument, form)| {
        let column = if is_scalar { argument.column } else { argument.into_column(rows)? };
        arrow_convert::to_array(&column, form)
    });
    let values = function.call(&arrays.collect::<Result<Vec<_>>>()?, rows)?;
    memory.count_rows(rows);
    Ok(ColumnarValue { column: arrow_convert::from_array(&values)?, is_scalar })
}

/// Evaluates the function by looking up its results for all values that the column can have. Returns `None` if these
/// are too many, or if the function fails for one of them.
fn call_by_table(
    function: &Arc<dyn ArrowFunction>,
    column: &Column,
    memory: &mut ExpressionState,
) -> Result<Option<ColumnarValue>> {
    let form = function
        .argument_types()
        .first()
        .ok_or(Error::Internal("a function with an argument declares no argument type"))?;
    let (domain, places) = match &column.data {
        ColumnData::Dictionary { indices: codes, dictionary: strings } if strings.len() <= codes.len().max(64) * 16 => {
            let null = u32::try_from(strings.len())
                .map_err(|_| Error::Internal("the dictionary of a function's argument has too many entries"))?;
            let place = |row: usize| if column.is_valid(row) { codes[row] } else { null };
            let places = match &column.validity {
                None => Cow::Borrowed(codes.as_slice()),
                Some(_) => (0..codes.len()).map(place).collect(),
            };
            (ArgumentDomain::Strings(strings.id()), places)
        }
        ColumnData::Ints { values, bounds } if bounds.max - bounds.min <= CACHED_DOMAIN_MAX && bounds.fit_i64() => {
            let first = i64::try_from(bounds.min)
                .map_err(|_| Error::Internal("the lower bound of a function's integer argument exceeds 64 bits"))?;
            let last = i64::try_from(bounds.max)
                .map_err(|_| Error::Internal("the upper bound of a function's integer argument exceeds 64 bits"))?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "values lie within their bounds"
            )]
            let place = |row: usize| {
                if column.is_valid(row) { (values[row] - first) as u32 } else { (last - first) as u32 + 1 }
            };
            (ArgumentDomain::Integers(first, last), (0..values.len()).map(place).collect())
        }
        _ => return Ok(None),
    };
    let (computed, is_too_large) = (Cell::new(0), Cell::new(false));
    let make = || {
        let values = domain_values(domain, &column.data, form)?;
        computed.set(values.len());
        let (table, is_too_much) =
            value_memory::run_with_memory_limit(TABLE_BYTES_MAX, || compute_table(function, &values, form));
        is_too_large.set(is_too_much);
        table
    };
    let Ok(table) = memory.result_table(function.id(), domain, make) else {
        if is_too_large.get() {
            memory.disable_cache(function.id());
        }
        return Ok(None);
    };
    let found = look_up(table, &places)?;
    memory.count_rows(computed.get());
    Ok(Some(found))
}

/// Returns all values of a column's domain, followed by NULL.
fn domain_values(domain: ArgumentDomain, data: &ColumnData, form: &DataType) -> Result<ArrayRef> {
    match (domain, data) {
        (ArgumentDomain::Strings(_), ColumnData::Dictionary { dictionary: strings, .. }) => {
            Ok(concat(&[strings.values(), &StringViewArray::from(vec![None::<&str>])])?)
        }
        (ArgumentDomain::Integers(first, last), _) => {
            let domain: Int64Array = (first..=last).map(Some).chain([None]).collect();
            arrow_convert::to_array(&arrow_convert::from_array(&(Arc::new(domain) as ArrayRef))?, form)
        }
        (ArgumentDomain::Strings(_), _) => {
            Err(Error::Internal("a function's results for a dictionary were requested for a column without one"))
        }
    }
}

/// Computes the function for all values of a domain.
fn compute_table(function: &Arc<dyn ArrowFunction>, domain: &ArrayRef, form: &DataType) -> Result<Column> {
    if domain.data_type() != form {
        return Err(Error::Internal("the values that a function is computed for have another type than its argument"));
    }
    let values = function.call(std::slice::from_ref(domain), domain.len())?;
    arrow_convert::to_dictionary(arrow_convert::from_array(&values)?)
}
