//! Size of an array's values as if each row had its own copy: other slices of the same buffers do not count, and
//! bytes shared by rows count once per row.

use arrow::array::{Array, AsArray, ByteView};
use arrow::datatypes::DataType;

/// Returns the bytes that the values would take in an array of their own.
pub(crate) fn value_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => view_bytes(array.as_string_view().views()),
        DataType::BinaryView => view_bytes(array.as_binary_view().views()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            let (first, end) = first_and_last_offset(list.value_offsets());
            size_of_val(list.value_offsets()) + value_bytes(list.values().slice(first, end - first).as_ref())
        }
        // For types without nested data, the slice's size is exact.
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

fn view_bytes(views: &[u128]) -> usize {
    size_of_val(views) + views.iter().map(|view| ByteView::from(*view).length as usize).sum::<usize>()
}

fn first_and_last_offset(offsets: &[i32]) -> (usize, usize) {
    let place = |offset: Option<&i32>| usize::try_from(offset.copied().unwrap_or(0)).expect("offsets are not negative");
    (place(offsets.first()), place(offsets.last()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Float64Array, ListArray, StringViewArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Field;

    use super::*;

    fn lists(values: ArrayRef, each: usize) -> ListArray {
        let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(each, values.len() / each));
        ListArray::new(Arc::new(Field::new_list_field(values.data_type().clone(), true)), offsets, values, None)
    }

    #[test]
    fn slices_count_by_what_they_show() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 1 << 16]));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a text that is longer than twelve bytes"; 1 << 16]));
        for values in [numbers, texts] {
            let whole = value_bytes(values.as_ref());
            let lists = lists(Arc::clone(&values), 1 << 8);
            let sum: usize = (0..lists.len()).map(|row| value_bytes(&lists.slice(row, 1))).sum();
            assert!(whole <= sum && sum < whole + lists.len() * 16, "{whole} {sum}");
            assert!(value_bytes(&lists) < whole + lists.len() * 8, "{whole}");
        }
    }
}
