//! Opened blocks.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::body::{Body, Runs, ensure};
use crate::{BlockHeader, Error, Result};

/// A validated block: up to 65,536 rows of one column. Cheap to clone; clones share the bytes.
#[derive(Debug, Clone)]
pub struct Block {
    head: BlockHeader,
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
        let (head, checksum) = BlockHeader::read_checked(&bytes)?;
        ensure(head.length == bytes.len(), "its length differs from the length in its header")?;
        ensure(
            xxh3_64(&bytes[BlockHeader::size_for(head.rows)..]) == checksum,
            "the body does not match its checksum",
        )?;
        let body = Body::open(&head, &bytes, depth)?;
        Ok(Self { head, body, bytes })
    }

    /// Returns the block's header.
    #[inline]
    pub fn head(&self) -> &BlockHeader {
        &self.head
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

    /// Fails with [`Error::Kind`] if `is_it` is false.
    pub(crate) fn expect_kind(&self, matches: bool) -> Result<()> {
        if matches { Ok(()) } else { Err(Error::Kind) }
    }
}
