//! A table's sample: some of its rows, for estimates.

use std::fmt;

use bytes::Bytes;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A uniform sample of a table's rows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Rows in the sample.
    pub rows: u64,
    /// Rows of the table it was drawn from.
    pub of: u64,
    /// The rows as an Arrow IPC stream; columns carry their SQL types as everywhere, named by their id.
    #[serde(serialize_with = "serialize", deserialize_with = "deserialize")]
    pub ipc: Bytes,
}

impl Sample {
    /// The most rows a sample has.
    pub const ROW_COUNT_MAX: usize = 4_096;
}

/// Without the bytes.
impl fmt::Debug for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sample({} of {} rows, {} bytes)", self.rows, self.of, self.ipc.len())
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
            Err(A::Error::custom("a list where bytes belong"))
        }
    }
    deserializer.deserialize_byte_buf(IpcBytes)
}
