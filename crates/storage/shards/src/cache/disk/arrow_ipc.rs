//! Storage of values that blocks cannot encode: an Arrow IPC stream of one column, followed by its checksum.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::{Field, Schema};
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

/// Serializes the values of a page; `None` if Arrow cannot.
pub(super) fn write(values: &ArrayRef) -> Option<Vec<u8>> {
    let schema = Arc::new(Schema::new(vec![Field::new("", values.data_type().clone(), true)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(values)]).ok()?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).ok()?;
    writer.write(&batch).ok()?;
    let mut bytes = writer.into_inner().ok()?;
    let checksum = xxh3_64(&bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    Some(bytes)
}

/// Parses `rows` values; `None` if the bytes are invalid. The checksum is verified before anything is parsed, and Arrow
/// validates the stream nevertheless.
pub(super) fn read(bytes: &Bytes, rows: usize) -> Option<ArrayRef> {
    let (stream, checksum) = bytes.split_last_chunk::<8>()?;
    if xxh3_64(stream) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let batch = StreamDecoder::new().decode(&mut Buffer::from(bytes.slice_ref(stream))).ok()??;
    let values = batch.columns().first().filter(|values| values.len() == rows)?;
    Some(Arc::clone(values))
}
