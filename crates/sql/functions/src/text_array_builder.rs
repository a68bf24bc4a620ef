//! Builder of `text[]` results, with a memory limit.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, StringViewBuilder};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType;
use types::value_memory::too_long_error;
use types::{SqlError, SqlResult, ValueMemoryCounter};

use crate::call::Call;

/// Memory of an element in bytes, apart from its text.
pub(super) const ELEMENT_BYTES: usize = 16;

/// Checks that a column of arrays can have more than `count` elements: offsets are 32-bit signed integers.
pub(super) fn check_count(count: usize) -> SqlResult<()> {
    if count < i32::MAX as usize { Ok(()) } else { Err(too_long_error()) }
}

/// Builds a result of type `text[]`: `row` adds its elements and returns false for NULL.
pub(super) fn build_text_arrays(
    call: &Call<'_>,
    mut row: impl FnMut(usize, &mut TextArrayBuilder) -> SqlResult<bool>,
) -> SqlResult<ArrayRef> {
    let DataType::List(item) = call.result_type.arrow_type() else {
        return Err(SqlError::internal("the Arrow type of text[] is not a list"));
    };
    let mut elements = TextArrayBuilder::default();
    let (mut lengths, mut validity) = (Vec::with_capacity(call.rows), Vec::with_capacity(call.rows));
    for index in 0..call.rows {
        let before = elements.count;
        validity.push(row(index, &mut elements)?);
        lengths.push(elements.count - before);
        elements.guard.add(0)?;
    }
    let values: ArrayRef = Arc::new(elements.texts.finish());
    Ok(Arc::new(ListArray::new(item, OffsetBuffer::from_lengths(lengths), values, Some(validity.into()))))
}

/// Elements of all rows so far.
#[derive(Default)]
pub(super) struct TextArrayBuilder {
    texts: StringViewBuilder,
    count: usize,
    guard: ValueMemoryCounter,
}

impl TextArrayBuilder {
    /// Adds an element to the array of the current row.
    ///
    /// # Errors
    /// Those of [`types::value_memory::check`].
    pub(super) fn push(&mut self, element: Option<&str>) -> SqlResult<()> {
        self.guard.add(ELEMENT_BYTES + element.map_or(0, str::len))?;
        check_count(self.count)?;
        self.texts.append_option(element);
        self.count += 1;
        Ok(())
    }
}
