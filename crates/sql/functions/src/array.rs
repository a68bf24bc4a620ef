//! Array functions. Subscripts start at 1, and elements beyond the ends are NULL; most of the work is done by
//! DataFusion.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ByteView};
use arrow::datatypes::Int32Type;
use datafusion::functions_nested as nested;
use datafusion::logical_expr::ScalarUDF;
use types::value_memory::check_growth;
use types::{Condition, SqlError, SqlResult, SqlType, ValueMemoryCounter};

use super::array_value_bytes::value_bytes;
use super::call::Call;
use super::cast::TextWriter;
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};
use super::text_array_builder::{ELEMENT_BYTES, build_text_arrays, check_count};
use crate::type_rules::common_type_of;

const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const TEXTS: ResultType = ResultType::Computed(|_| Ok(SqlType::Array(Box::new(SqlType::Text))));

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "array_literal",
        "array of the arguments; written ARRAY[...]",
        &[Overload::builtin(&[T::Any], ResultType::Computed(literal_type), F::Nothing, make_array).variadic()],
    ),
    Definition::new(
        "array_element",
        "element of an array; written a[i]",
        &[Overload::rows(&[T::AnyArray, T::Int4], ResultType::ElementOf(0), F::Nothing, element)],
    ),
    Definition::new(
        "array_slice",
        "slice of an array; written a[i:j]",
        &[Overload::rows(&[T::AnyArray, T::Int4, T::Int4], ResultType::SameAs(0), F::Nothing, slice)],
    ),
    Definition::new(
        "array_length",
        "length of an array dimension",
        &[Overload::rows(&[T::AnyArray, T::Int4], INT4, F::Nothing, length)],
    )
    .in_catalog(&[catalog_entry(2176, "anyarray,int4", "int4")]),
    Definition::new(
        "array_upper",
        "upper bound of an array dimension",
        &[Overload::rows(&[T::AnyArray, T::Int4], INT4, F::Nothing, length)],
    )
    .in_catalog(&[catalog_entry(2092, "anyarray,int4", "int4")]),
    Definition::new(
        "array_lower",
        "lower bound of an array dimension",
        &[Overload::rows(&[T::AnyArray, T::Int4], INT4, F::Nothing, lower)],
    )
    .in_catalog(&[catalog_entry(2091, "anyarray,int4", "int4")]),
    Definition::new(
        "array_ndims",
        "number of array dimensions",
        &[Overload::rows(&[T::AnyArray], INT4, F::Nothing, dimensions)],
    )
    .in_catalog(&[catalog_entry(748, "anyarray", "int4")]),
    Definition::new(
        "cardinality",
        "number of elements of an array",
        &[Overload::rows(&[T::AnyArray], INT4, F::Nothing, cardinality)],
    )
    .in_catalog(&[catalog_entry(3179, "anyarray", "int4")]),
    Definition::new(
        "array_append",
        "append an element to the end of an array",
        &[Overload::builtin(&[T::AnyArray, T::Any], ResultType::SameAs(0), F::Nothing, append)],
    )
    .in_catalog(&[catalog_entry(378, "anycompatiblearray,anycompatible", "anycompatiblearray").called_on_null()]),
    Definition::new(
        "array_prepend",
        "prepend an element to the beginning of an array",
        &[Overload::builtin(&[T::Any, T::AnyArray], ResultType::SameAs(1), F::Nothing, prepend)],
    )
    .in_catalog(&[catalog_entry(379, "anycompatible,anycompatiblearray", "anycompatiblearray").called_on_null()]),
    Definition::new(
        "array_cat",
        "concatenate two arrays",
        &[Overload::builtin(&[T::AnyArray, T::AnyArray], ResultType::SameAs(0), F::Nothing, concat)],
    )
    .in_catalog(&[catalog_entry(383, "anycompatiblearray,anycompatiblearray", "anycompatiblearray").called_on_null()]),
    Definition::new(
        "array_position",
        "position of a value in an array",
        &[Overload::builtin(&[T::AnyArray, T::Any], INT4, F::Nothing, position)],
    )
    .in_catalog(&[catalog_entry(3277, "anycompatiblearray,anycompatible", "int4").called_on_null()]),
    Definition::new(
        "array_remove",
        "remove all occurrences of a value from an array",
        &[Overload::rows(&[T::AnyArray, T::Any], ResultType::SameAs(0), F::Nothing, remove)],
    )
    .in_catalog(&[catalog_entry(3167, "anycompatiblearray,anycompatible", "anycompatiblearray").called_on_null()]),
    Definition::new(
        "array_replace",
        "replace all occurrences of a value in an array",
        &[Overload::builtin(&[T::AnyArray, T::Any, T::Any], ResultType::SameAs(0), F::Nothing, replace_all)],
    )
    .in_catalog(&[
        catalog_entry(3168, "anycompatiblearray,anycompatible,anycompatible", "anycompatiblearray").called_on_null()
    ]),
    Definition::new("&&", "overlaps", &[Overload::builtin(&[T::AnyArray, T::AnyArray], BOOL, F::Nothing, has_any)]),
    Definition::new("any_equal", "equals an element of an array; written x = ANY (a)", ANY_EQUAL_OVERLOADS),
    Definition::new(
        "array_to_string",
        "concatenate array elements, using a delimiter, into text",
        &[
            Overload::rows(&[T::AnyArray, T::Text], TEXT, F::Nothing, to_string),
            Overload::rows(&[T::AnyArray, T::Text, T::Text], TEXT, F::Nothing, to_string),
        ],
    )
    .in_catalog(&[
        catalog_entry(384, "anyarray,text,text", "text").stable().called_on_null(),
        catalog_entry(395, "anyarray,text", "text").stable(),
    ]),
    Definition::new(
        "string_to_array",
        "split delimited text",
        &[
            Overload::rows(&[T::Text, T::Text], TEXTS, F::Nothing, from_string),
            Overload::rows(&[T::Text, T::Text, T::Text], TEXTS, F::Nothing, from_string),
        ],
    )
    .in_catalog(&[
        catalog_entry(376, "text,text,text", "_text").called_on_null(),
        catalog_entry(394, "text,text", "_text").called_on_null(),
    ]),
];

const ANY_EQUAL_OVERLOADS: &[Overload] = &[Overload::rows(&[T::AnyArray, T::Any], BOOL, F::Nothing, any_equal)];

/// Definition of `x = ANY (array)`.
pub static ANY_EQUAL: Definition =
    Definition::new("any_equal", "equals an element of an array; written x = ANY (a)", ANY_EQUAL_OVERLOADS);

/// Evaluates `x = ANY (array)`: true if an element is equal; NULL if none is equal but an element or the value is
/// NULL.
fn any_equal(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let wanted = &call.arguments[1];
    call.build_booleans(|row| {
        let Some(list) = call.list(0, row) else { return Ok(None) };
        let value = wanted.values.slice(if wanted.is_constant { 0 } else { row }, 1);
        if list.is_empty() {
            return Ok(Some(false));
        }
        if value.is_null(0) {
            return Ok(None);
        }
        let equal = arrow::compute::kernels::cmp::eq(&list, &arrow::array::Scalar::new(value))
            .map_err(|error| SqlError::internal(error.to_string()))?;
        if 0 < equal.true_count() { Ok(Some(true)) } else { Ok((equal.null_count() == 0).then_some(false)) }
    })
}

fn literal_type(arguments: &[SqlType]) -> SqlResult<SqlType> {
    if arguments.is_empty() {
        return Err(SqlError::new(Condition::IndeterminateDatatype, "cannot determine type of empty array")
            .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
    }
    common_type_of(arguments, "ARRAY").map(|element| SqlType::Array(Box::new(element)))
}

fn make_array() -> Arc<ScalarUDF> {
    nested::make_array::make_array_udf()
}

pub(super) fn concat() -> Arc<ScalarUDF> {
    nested::concat::array_concat_udf()
}

pub(super) fn append() -> Arc<ScalarUDF> {
    nested::concat::array_append_udf()
}

pub(super) fn prepend() -> Arc<ScalarUDF> {
    nested::concat::array_prepend_udf()
}

pub(super) fn has_all() -> Arc<ScalarUDF> {
    nested::array_has::array_has_all_udf()
}

fn has_any() -> Arc<ScalarUDF> {
    nested::array_has::array_has_any_udf()
}

fn position() -> Arc<ScalarUDF> {
    nested::position::array_position_udf()
}

fn replace_all() -> Arc<ScalarUDF> {
    nested::replace::array_replace_all_udf()
}

/// Returns the range of a row's elements within the values of the first argument; `None` for NULL.
fn row_range(call: &Call<'_>, row: usize) -> Option<std::ops::Range<usize>> {
    let argument = &call.arguments[0];
    let row = if argument.is_constant { 0 } else { row };
    let list = argument.values.as_list::<i32>();
    let offsets = list.value_offsets();
    let bound = |index: usize| usize::try_from(offsets[index]).expect("offsets are not negative");
    list.is_valid(row).then(|| bound(row)..bound(row + 1))
}

/// Returns the element at a subscript, or NULL beyond the ends. Subscripts start at 1, those of the catalog's vectors
/// at 0.
fn element(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let first = i32::from(matches!(call.argument_types[0], SqlType::Array(_)));
    let index = call.column::<Int32Type>(1);
    let values = call.arguments[0].values.as_list::<i32>().values();
    let picked: arrow::array::UInt32Array = (0..call.rows)
        .map(|row| {
            let range = row_range(call, row)?;
            let offset = usize::try_from(index.get(row)?.checked_sub(first)?).ok()?;
            let position = range.start + offset;
            (position < range.end).then(|| u32::try_from(position).ok()).flatten()
        })
        .collect();
    arrow::compute::take(values, &picked, None).map_err(|error| SqlError::internal(error.to_string()))
}

fn slice(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (from, to) = (call.column::<Int32Type>(1), call.column::<Int32Type>(2));
    pick_elements(call, |row| {
        let (Some(range), Some(from), Some(to)) = (row_range(call, row), from.get(row), to.get(row)) else {
            return Ok(None);
        };
        let count = i64::try_from(range.len()).unwrap_or(i64::MAX);
        let first = i64::from(from).max(1) - 1;
        let end = i64::from(to).min(count);
        Ok(Some((first..end).filter_map(|offset| Some(range.start + usize::try_from(offset).ok()?)).collect()))
    })
}

/// Removes the elements equal to a value, as `array_remove` does; NULL equals NULL here.
fn remove(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let elements = call.arguments[0].values.as_list::<i32>().values();
    let internal = |error: arrow::error::ArrowError| SqlError::internal(error.to_string());
    let unwanted = arrow::compute::cast(&call.arguments[1].values, elements.data_type()).map_err(internal)?;
    pick_elements(call, |row| {
        let Some(range) = row_range(call, row) else { return Ok(None) };
        let unwanted = unwanted.slice(if call.arguments[1].is_constant { 0 } else { row }, 1);
        let others = arrow::compute::kernels::cmp::distinct(
            &elements.slice(range.start, range.len()),
            &arrow::array::Scalar::new(unwanted),
        )
        .map_err(internal)?;
        Ok(Some(range.zip(others.values()).filter_map(|(at, is_other)| is_other.then_some(at)).collect()))
    })
}

/// Builds arrays from elements of the first argument, an array: `row` returns their positions in its values, or
/// `None` for NULL.
fn pick_elements(call: &Call<'_>, row: impl Fn(usize) -> SqlResult<Option<Vec<usize>>>) -> SqlResult<ArrayRef> {
    let list = call.arguments[0].values.as_list::<i32>();
    let mut lengths = Vec::with_capacity(call.rows);
    let mut positions = Vec::new();
    let (mut validity, mut guard) = (Vec::with_capacity(call.rows), ValueMemoryCounter::default());
    let element_bytes = ELEMENT_BYTES + value_bytes(list.values().as_ref()) / list.values().len().max(1);
    for index in 0..call.rows {
        let found = row(index)?;
        validity.push(found.is_some());
        let found = found.unwrap_or_default();
        guard.add(found.len().saturating_mul(element_bytes))?;
        check_count(positions.len() + found.len())?;
        lengths.push(found.len());
        positions.extend(found.into_iter().filter_map(|at| u32::try_from(at).ok()));
    }
    let values = arrow::compute::take(list.values(), &arrow::array::UInt32Array::from(positions), None)
        .map_err(|error| SqlError::internal(error.to_string()))?;
    let arrow::datatypes::DataType::List(item) = call.result_type.arrow_type() else {
        return Err(SqlError::internal("array_remove or array_slice: the Arrow type of the result is not a list"));
    };
    let offsets = arrow::buffer::OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(arrow::array::ListArray::new(item, offsets, values, Some(validity.into()))))
}

fn length(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let dimension = call.column::<Int32Type>(1);
    call.build_primitive::<Int32Type>(|row| {
        let range = row_range(call, row).filter(|range| !range.is_empty() && dimension.get(row) == Some(1));
        Ok(range.and_then(|range| i32::try_from(range.len()).ok()))
    })
}

fn lower(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let dimension = call.column::<Int32Type>(1);
    call.build_primitive::<Int32Type>(|row| {
        Ok(row_range(call, row).filter(|range| !range.is_empty() && dimension.get(row) == Some(1)).map(|_| 1))
    })
}

fn dimensions(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Int32Type>(|row| Ok(row_range(call, row).filter(|range| !range.is_empty()).map(|_| 1)))
}

fn cardinality(call: &Call<'_>) -> SqlResult<ArrayRef> {
    call.build_primitive::<Int32Type>(|row| Ok(row_range(call, row).and_then(|range| i32::try_from(range.len()).ok())))
}

/// Joins elements to text. NULL elements are omitted unless a third argument replaces them.
fn to_string(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let element =
        call.argument_types[0].element().ok_or_else(|| SqlError::internal("array_to_string takes an array"))?;
    let separator = call.text(1);
    call.build_texts(|row, out| {
        let (Some(list), Some(separator)) = (call.list(0, row), separator.get(row)) else { return Ok(None) };
        let null = if call.argument_count() == 3 { call.text(2).get(row) } else { None };
        let writer = TextWriter::new(&list, &element, call.session.zone).with_names(call.session.names());
        let texts = list.as_string_view_opt();
        let lengths = |index: usize| texts.map_or(0, |texts| ByteView::from(texts.views()[index]).length as usize);
        let mut is_first = true;
        for index in 0..list.len() {
            if list.is_null(index) && null.is_none() {
                continue;
            }
            let separator = if is_first { "" } else { separator };
            check_growth(out, separator.len().saturating_add(lengths(index)))?;
            out.push_str(separator);
            is_first = false;
            // A cast to text writes `true`; an array's elements are written as `t`.
            if element == SqlType::Bool && list.is_valid(index) {
                out.push(if list.as_boolean().value(index) { 't' } else { 'f' });
            } else if writer.write(index, out).is_none() {
                check_growth(out, null.map_or(0, str::len))?;
                out.push_str(null.unwrap_or_default());
            }
        }
        Ok(Some(()))
    })
}

/// Splits text into an array. A NULL separator splits into characters, an empty one not at all.
fn from_string(call: &Call<'_>) -> SqlResult<ArrayRef> {
    let (text, separator) = (call.text(0), call.text(1));
    build_text_arrays(call, |row, parts| {
        let Some(text) = text.get(row) else { return Ok(false) };
        let null = if call.argument_count() == 3 { call.text(2).get(row) } else { None };
        let mut push = |part: &str| parts.push((Some(part) != null).then_some(part));
        match separator.get(row) {
            _ if text.is_empty() => {}
            None => text.chars().try_for_each(|character| push(character.encode_utf8(&mut [0; 4])))?,
            Some("") => push(text)?,
            Some(separator) => text.split(separator).try_for_each(push)?,
        }
        Ok(true)
    })
}
