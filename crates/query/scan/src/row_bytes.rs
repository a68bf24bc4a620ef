//! Size of rows in memory, without what their buffers share with other batches.

use arrow::array::{Array, AsArray, ByteView, MAX_INLINE_VIEW_LEN, RecordBatch};
use arrow::datatypes::DataType;

/// Returns the bytes of a batch's own rows; of shared buffers only the part in use counts.
#[must_use]
pub fn row_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column_bytes(column)).sum()
}

fn column_bytes(column: &dyn Array) -> usize {
    match column.data_type() {
        DataType::Utf8View => view_bytes(column.as_string_view().views()),
        DataType::BinaryView => view_bytes(column.as_binary_view().views()),
        // Types whose buffers cannot be measured by slice count in full.
        _ => column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size()),
    }
}

fn view_bytes(views: &[u128]) -> usize {
    let lengths = views.iter().map(|view| ByteView::from(*view).length);
    let outside = lengths.filter(|length| MAX_INLINE_VIEW_LEN < *length);
    size_of_val(views) + outside.map(|length| length as usize).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};

    use super::*;

    #[test]
    fn texts_count_by_their_own_bytes() {
        let long = "a text that is longer than twelve bytes";
        let texts = StringViewArray::from_iter_values(std::iter::repeat_n(long, 1_000).chain(["short"]));
        assert_eq!(column_bytes(&texts.slice(999, 2)), 2 * 16 + long.len());
        assert_eq!(column_bytes(&Int64Array::from_iter_values(0..1_000).slice(0, 3)), 3 * 8);
    }
}
