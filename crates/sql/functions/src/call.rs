//! Arguments of one function invocation, with typed access to them, and builders for the result.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, BooleanArray, BooleanBuilder, PrimitiveArray,
    PrimitiveBuilder, StringViewArray, StringViewBuilder,
};
use session_context::EvaluationContext;
use types::{Condition, SqlError, SqlResult, SqlType, ValueMemoryCounter};

/// Size limit of a binary array's values: its offsets are 32-bit signed integers.
const BINARY_BYTES_MAX: usize = i32::MAX as usize;

/// Invocation of a function: arguments as arrays in the Arrow form of their SQL type; constants are arrays of one
/// row.
pub struct Call<'a> {
    pub(crate) arguments: &'a [Argument],
    pub(crate) argument_types: &'a [SqlType],
    /// Number of rows of the result.
    pub(crate) rows: usize,
    pub(crate) result_type: &'a SqlType,
    pub(crate) session: &'a EvaluationContext,
}

/// Values of one argument.
pub(crate) struct Argument {
    pub(crate) values: ArrayRef,
    /// True if the only value applies to every row.
    pub(crate) is_constant: bool,
}

/// Text argument, read by row.
#[derive(Clone, Copy)]
pub(crate) struct TextColumn<'a> {
    values: &'a StringViewArray,
    is_constant: bool,
}

/// Argument of a primitive type, read by row.
#[derive(Clone, Copy)]
pub(crate) struct PrimitiveColumn<'a, T: ArrowPrimitiveType> {
    values: &'a PrimitiveArray<T>,
    is_constant: bool,
}

impl<'a> TextColumn<'a> {
    /// Returns the row's text, or `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        let row = if self.is_constant { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

impl<T: ArrowPrimitiveType> PrimitiveColumn<'_, T> {
    /// Returns the row's value, or `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        let row = if self.is_constant { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

impl<'a> Call<'a> {
    /// Returns the text argument at `index`.
    pub(crate) fn text(&self, index: usize) -> TextColumn<'a> {
        let argument = &self.arguments[index];
        TextColumn { values: argument.values.as_string_view(), is_constant: argument.is_constant }
    }

    /// Returns the argument of a primitive type at `index`.
    pub(crate) fn column<T: ArrowPrimitiveType>(&self, index: usize) -> PrimitiveColumn<'a, T> {
        let argument = &self.arguments[index];
        PrimitiveColumn { values: argument.values.as_primitive(), is_constant: argument.is_constant }
    }

    /// Returns one row of a boolean argument, or `None` for NULL.
    pub(crate) fn boolean(&self, index: usize, row: usize) -> Option<bool> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values: &BooleanArray = argument.values.as_boolean();
        values.is_valid(row).then(|| values.value(row))
    }

    /// Returns one row of a bytea argument, or `None` for NULL.
    pub(crate) fn bytes(&self, index: usize, row: usize) -> Option<&'a [u8]> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values = argument.values.as_binary::<i32>();
        values.is_valid(row).then(|| values.value(row))
    }

    /// Returns one row of an array argument, or `None` for NULL.
    pub(crate) fn list(&self, index: usize, row: usize) -> Option<ArrayRef> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values = argument.values.as_list::<i32>();
        values.is_valid(row).then(|| values.value(row))
    }

    /// Returns the number of arguments.
    pub(crate) fn argument_count(&self) -> usize {
        self.arguments.len()
    }

    /// Returns the scale of a numeric argument.
    pub(crate) fn scale(&self, index: usize) -> u8 {
        scale_of(&self.argument_types[index])
    }

    /// Builds a primitive result row by row.
    pub(crate) fn build_primitive<T: ArrowPrimitiveType>(
        &self,
        mut row: impl FnMut(usize) -> SqlResult<Option<T::Native>>,
    ) -> SqlResult<ArrayRef> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows).with_data_type(self.result_type.arrow_type());
        let mut guard = ValueMemoryCounter::default();
        for index in 0..self.rows {
            builder.append_option(row(index)?);
            guard.add(0)?;
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a boolean result row by row.
    pub(crate) fn build_booleans(&self, mut row: impl FnMut(usize) -> SqlResult<Option<bool>>) -> SqlResult<ArrayRef> {
        let mut builder = BooleanBuilder::with_capacity(self.rows);
        let mut guard = ValueMemoryCounter::default();
        for index in 0..self.rows {
            builder.append_option(row(index)?);
            guard.add(0)?;
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a text result: `row` writes into the buffer and returns `None` for NULL. If a value may be far longer
    /// than its arguments, `row` checks the memory limit itself before it writes.
    pub(crate) fn build_texts(
        &self,
        mut row: impl FnMut(usize, &mut String) -> SqlResult<Option<()>>,
    ) -> SqlResult<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(self.rows);
        let (mut buffer, mut guard) = (String::new(), ValueMemoryCounter::default());
        for index in 0..self.rows {
            buffer.clear();
            let is_there = row(index, &mut buffer)?.is_some();
            guard.add_text(buffer.len())?;
            if is_there {
                builder.append_value(&buffer);
            } else {
                builder.append_null();
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a text result from slices of the arguments, without an intermediate buffer.
    pub(crate) fn build_slices<'t>(
        &self,
        mut row: impl FnMut(usize) -> SqlResult<Option<&'t str>>,
    ) -> SqlResult<ArrayRef> {
        let (mut builder, mut guard) = (StringViewBuilder::with_capacity(self.rows), ValueMemoryCounter::default());
        for index in 0..self.rows {
            let text = row(index)?;
            guard.add(text.map_or(0, str::len))?;
            builder.append_option(text);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a bytea result.
    pub(crate) fn build_binaries(
        &self,
        mut row: impl FnMut(usize) -> SqlResult<Option<Vec<u8>>>,
    ) -> SqlResult<ArrayRef> {
        let (mut builder, mut guard) = (BinaryBuilder::new(), ValueMemoryCounter::default());
        for index in 0..self.rows {
            let bytes = row(index)?;
            check_binary(&builder, bytes.as_deref(), &mut guard)?;
            builder.append_option(bytes);
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// Checks that a value can be added to a binary array: the memory limit and the array's size limit of 2 GiB.
///
/// # Errors
/// SQLSTATE 53200.
pub(crate) fn check_binary(
    builder: &BinaryBuilder,
    value: Option<&[u8]>,
    guard: &mut ValueMemoryCounter,
) -> SqlResult<()> {
    let bytes = value.map_or(0, <[u8]>::len);
    guard.add_text(bytes)?;
    if BINARY_BYTES_MAX <= builder.values_slice().len() + bytes {
        return Err(SqlError::new(Condition::OutOfMemory, "out of memory")
            .with_detail("The bytea values of one batch of rows exceed 2 GB."));
    }
    Ok(())
}

/// Returns the scale of a numeric type; 0 for others.
pub(crate) fn scale_of(sql_type: &SqlType) -> u8 {
    match sql_type {
        SqlType::Numeric { scale, .. } => *scale,
        _ => 0,
    }
}
