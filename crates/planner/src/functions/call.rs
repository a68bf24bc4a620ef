//! One invocation of a function: typed access to its arguments, and builders for its result.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryBuilder, BooleanArray, BooleanBuilder, PrimitiveArray,
    PrimitiveBuilder, StringViewArray, StringViewBuilder,
};
use types::{SqlResult, SqlType};

use crate::semantics::Session;

/// Arguments as arrays in the Arrow form of their SQL type; constants as arrays of one row.
pub(crate) struct Call<'a> {
    pub(crate) arguments: &'a [Argument],
    pub(crate) types: &'a [SqlType],
    /// How many rows the result has.
    pub(crate) rows: usize,
    pub(crate) gives: &'a SqlType,
    pub(crate) session: &'a Session,
}

/// An argument's values.
pub(crate) struct Argument {
    pub(crate) values: ArrayRef,
    /// Whether the one value stands for every row.
    pub(crate) is_constant: bool,
}

/// Text values by row.
#[derive(Clone, Copy)]
pub(crate) struct TextColumn<'a> {
    values: &'a StringViewArray,
    is_constant: bool,
}

/// Values of a primitive type by row.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a, T: ArrowPrimitiveType> {
    values: &'a PrimitiveArray<T>,
    is_constant: bool,
}

impl<'a> TextColumn<'a> {
    /// The row's text, or `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        let row = if self.is_constant { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

impl<T: ArrowPrimitiveType> Column<'_, T> {
    /// The row's value, or `None` for NULL.
    pub(crate) fn get(&self, row: usize) -> Option<T::Native> {
        let row = if self.is_constant { 0 } else { row };
        self.values.is_valid(row).then(|| self.values.value(row))
    }
}

impl<'a> Call<'a> {
    /// A text argument.
    pub(crate) fn text(&self, index: usize) -> TextColumn<'a> {
        let argument = &self.arguments[index];
        TextColumn { values: argument.values.as_string_view(), is_constant: argument.is_constant }
    }

    /// An argument of a primitive type.
    pub(crate) fn column<T: ArrowPrimitiveType>(&self, index: usize) -> Column<'a, T> {
        let argument = &self.arguments[index];
        Column { values: argument.values.as_primitive(), is_constant: argument.is_constant }
    }

    /// A boolean argument's row.
    pub(crate) fn boolean(&self, index: usize, row: usize) -> Option<bool> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values: &BooleanArray = argument.values.as_boolean();
        values.is_valid(row).then(|| values.value(row))
    }

    /// A bytea argument's row.
    pub(crate) fn bytes(&self, index: usize, row: usize) -> Option<&'a [u8]> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values = argument.values.as_binary::<i32>();
        values.is_valid(row).then(|| values.value(row))
    }

    /// An array argument's row.
    pub(crate) fn list(&self, index: usize, row: usize) -> Option<ArrayRef> {
        let argument = &self.arguments[index];
        let row = if argument.is_constant { 0 } else { row };
        let values = argument.values.as_list::<i32>();
        values.is_valid(row).then(|| values.value(row))
    }

    /// How many arguments the call has.
    pub(crate) fn count(&self) -> usize {
        self.arguments.len()
    }

    /// The scale of a numeric argument.
    pub(crate) fn scale(&self, index: usize) -> u8 {
        scale_of(&self.types[index])
    }

    /// Builds a primitive result row by row.
    pub(crate) fn primitive<T: ArrowPrimitiveType>(
        &self,
        mut row: impl FnMut(usize) -> SqlResult<Option<T::Native>>,
    ) -> SqlResult<ArrayRef> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows).with_data_type(self.gives.arrow_type());
        for index in 0..self.rows {
            builder.append_option(row(index)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a boolean result row by row.
    pub(crate) fn booleans(&self, mut row: impl FnMut(usize) -> SqlResult<Option<bool>>) -> SqlResult<ArrayRef> {
        let mut builder = BooleanBuilder::with_capacity(self.rows);
        for index in 0..self.rows {
            builder.append_option(row(index)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a text result: `row` writes into the buffer and says whether there is a value.
    pub(crate) fn texts(
        &self,
        mut row: impl FnMut(usize, &mut String) -> SqlResult<Option<()>>,
    ) -> SqlResult<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(self.rows);
        let mut buffer = String::new();
        for index in 0..self.rows {
            buffer.clear();
            match row(index, &mut buffer)? {
                Some(()) => builder.append_value(&buffer),
                None => builder.append_null(),
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a text result of parts of the arguments, copying nothing else.
    pub(crate) fn slices<'t>(&self, mut row: impl FnMut(usize) -> SqlResult<Option<&'t str>>) -> SqlResult<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(self.rows);
        for index in 0..self.rows {
            builder.append_option(row(index)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Builds a bytea result.
    pub(crate) fn binaries(&self, mut row: impl FnMut(usize) -> SqlResult<Option<Vec<u8>>>) -> SqlResult<ArrayRef> {
        let mut builder = BinaryBuilder::new();
        for index in 0..self.rows {
            builder.append_option(row(index)?);
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// The scale of a numeric type; 0 for others.
pub(crate) fn scale_of(sql_type: &SqlType) -> u8 {
    match sql_type {
        SqlType::Numeric { scale, .. } => *scale,
        _ => 0,
    }
}
