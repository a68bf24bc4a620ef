//! Samples of tables' rows, for selectivity estimates.

use std::fmt;
use std::sync::OnceLock;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use bytes::Bytes;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Uniform random sample of a table's rows.
#[derive(Clone, Serialize, Deserialize)]
pub struct Sample {
    /// Number of rows in the sample.
    pub rows: u64,
    /// Number of rows of the table that the sample was drawn from.
    #[serde(rename = "of")]
    pub table_rows: u64,
    /// The rows as an Arrow IPC stream. Columns are named by their id and carry their SQL types as metadata.
    #[serde(serialize_with = "serialize", deserialize_with = "deserialize")]
    pub ipc: Bytes,
    /// The decoded rows, cached after the first use.
    #[serde(skip)]
    decoded: OnceLock<Option<RecordBatch>>,
}

impl Sample {
    /// Maximum number of rows in a sample.
    pub const ROW_COUNT_MAX: usize = 4_096;

    /// Creates a sample of `rows` rows drawn from `table_rows`, encoded as the Arrow IPC stream `ipc`.
    #[must_use]
    pub fn new(rows: u64, table_rows: u64, ipc: Bytes) -> Self {
        Self { rows, table_rows, ipc, decoded: OnceLock::new() }
    }

    /// Returns the decoded rows, which share the stream's memory; `None` if the stream is invalid.
    #[must_use]
    pub fn batch(&self) -> Option<&RecordBatch> {
        let decode = || StreamDecoder::new().decode(&mut Buffer::from(self.ipc.clone())).ok().flatten();
        self.decoded.get_or_init(decode).as_ref()
    }
}

impl PartialEq for Sample {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.table_rows, &self.ipc) == (other.rows, other.table_rows, &other.ipc)
    }
}

impl Eq for Sample {}

/// Omits the rows.
impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({} of {} rows, {} bytes)", self.rows, self.table_rows, self.ipc.len())
    }
}

fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    struct IpcBytes;
    impl<'de> Visitor<'de> for IpcBytes {
        type Value = Bytes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Bytes, E> {
            Ok(Bytes::copy_from_slice(bytes))
        }

        fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
            Ok(Bytes::from(bytes))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Bytes, A::Error> {
            Err(A::Error::custom("stored sample: expected bytes, found a list"))
        }
    }
    deserializer.deserialize_byte_buf(IpcBytes)
}
