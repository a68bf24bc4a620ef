//! Encodes one-dimensional arrays as `array_out` and `array_send` do.

use std::ops::Range;

use arrow::buffer::OffsetBuffer;
use bytes::{BufMut, BytesMut};
use types::text::ArrayWriter;

use super::binary::BinaryEncoder;
use super::prepare_column::ListForm;
use super::text::TextEncoder;
use super::wire_length;

/// Returns the range of elements of list `row`.
pub(super) fn list_range(offsets: &OffsetBuffer<i32>, row: usize) -> Range<usize> {
    let at = |index: usize| usize::try_from(offsets[index]).expect("Arrow offsets are never negative");
    at(row)..at(row + 1)
}

/// Appends `{a,"b c",NULL}`, or `1 2` for a vector.
pub(super) fn write_text(items: &mut TextEncoder, form: ListForm, range: Range<usize>, out: &mut String) {
    if form == ListForm::Blanks {
        for (index, item) in range.enumerate() {
            if index > 0 {
                out.push(' ');
            }
            out.push_str(items.text(item).unwrap_or_default());
        }
        return;
    }
    let mut writer = ArrayWriter::start(out);
    for item in range {
        match items.text(item) {
            None => writer.null(),
            Some(text) => writer.element(text),
        }
    }
    writer.finish();
}

/// Appends the binary form: dimensions, NULL flag, element type, length, lower bound, elements with their lengths.
pub(super) fn write_binary(
    items: &mut BinaryEncoder,
    element_oid: u32,
    form: ListForm,
    range: Range<usize>,
    out: &mut BytesMut,
) {
    let has_nulls = range.clone().any(|item| items.is_null(item));
    out.put_i32(i32::from(!range.is_empty()));
    out.put_i32(i32::from(has_nulls));
    out.put_u32(element_oid);
    if range.is_empty() {
        return;
    }
    out.put_i32(wire_length(range.len()));
    out.put_i32(if form == ListForm::Braces { 1 } else { 0 });
    for item in range {
        items.write_field(item, out);
    }
}
