//! Arrays of texts as functions split them off: one array for each row, none of them longer than there is memory for.

use std::sync::Arc;

use arrow::array::{ArrayRef, ListArray, StringViewBuilder};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType;
use types::value_guard::too_long;
use types::{SqlError, SqlResult, ValueGuard};

use crate::call::Call;

/// An element takes this many bytes beside its text.
pub(super) const ELEMENT_BYTES: usize = 16;

/// Whether there may be more elements than so many: the places of a column's arrays in all their elements have 31 bits.
pub(super) fn check_count(count: usize) -> SqlResult<()> {
    if count < i32::MAX as usize { Ok(()) } else { Err(too_long()) }
}

/// Builds a result of type `text[]`: `row` adds its elements and says whether there is an array.
pub(super) fn text_lists(
    call: &Call<'_>,
    mut row: impl FnMut(usize, &mut Elements) -> SqlResult<bool>,
) -> SqlResult<ArrayRef> {
    let DataType::List(item) = call.gives.arrow_type() else {
        return Err(SqlError::internal("an array type is a list"));
    };
    let mut elements = Elements::default();
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

/// The elements of all rows so far.
#[derive(Default)]
pub(super) struct Elements {
    texts: StringViewBuilder,
    count: usize,
    guard: ValueGuard,
}

impl Elements {
    /// Adds an element to the array of the row.
    ///
    /// # Errors
    /// As [`types::value_guard::check`].
    pub(super) fn push(&mut self, element: Option<&str>) -> SqlResult<()> {
        self.guard.add(ELEMENT_BYTES + element.map_or(0, str::len))?;
        check_count(self.count)?;
        self.texts.append_option(element);
        self.count += 1;
        Ok(())
    }
}
