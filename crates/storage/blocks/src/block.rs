//! Opened blocks.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::block_body::{Body, Runs, ensure};
use crate::{BlockHeader, Error, Result};

/// A validated block: up to 65,536 rows of one column. Cheap to clone; clones share the bytes.
#[derive(Debug, Clone)]
pub struct Block {
    header: BlockHeader,
    body: Body,
    bytes: Bytes,
}

impl Block {
    /// Opens a block and validates its structure, so that untrusted bytes give a block or an error, and reads never
    /// panic. Changed values, which the structure cannot reveal, are detected by the checksums.
    ///
    /// Kernels are fastest if the bytes are aligned to 64 in memory, as encoded blocks are.
    pub fn open(bytes: Bytes) -> Result<Self> {
        Self::open_nested(bytes, 0)
    }

    pub(crate) fn open_nested(bytes: Bytes, depth: usize) -> Result<Self> {
        let (header, checksum) = BlockHeader::read_checked(&bytes)?;
        ensure(header.length == bytes.len(), "the block's length differs from the length in its header")?;
        ensure(
            xxh3_64(&bytes[BlockHeader::header_bytes_for(header.rows)..]) == checksum,
            "the body does not match its checksum",
        )?;
        let body = Body::open(&header, &bytes, depth)?;
        Ok(Self { header, body, bytes })
    }

    /// Returns the block's header.
    #[inline]
    pub fn header(&self) -> &BlockHeader {
        &self.header
    }

    /// Returns the stored form of the block.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the runs of a run-length encoded block, so that callers can process each value once per run.
    pub fn runs(&self) -> Option<&Runs> {
        match &self.body {
            Body::Runs(runs) => Some(runs),
            _ => None,
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// Fails with [`Error::TypeMismatch`] if `matches` is false.
    pub(crate) fn expect_kind(&self, matches: bool) -> Result<()> {
        if matches { Ok(()) } else { Err(Error::TypeMismatch) }
    }
}
