//! A block: its head and its body, checked once.

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::body::{Body, Runs, check};
use crate::{Error, Head, Result};

/// Up to 65,536 rows of one column. Cheap to clone; what it was opened from is shared.
#[derive(Debug, Clone)]
pub struct Block {
    head: Head,
    body: Body,
    bytes: Bytes,
}

impl Block {
    /// Opens a block and checks all that the rest relies on: bytes from anywhere give a block or an error. What the checks cannot
    /// see, because it takes no bounds to be wrong, are values other than those that were written: the checksums are for that.
    ///
    /// Kernels are fastest where the bytes begin at a multiple of 64 in memory, as blocks made here do.
    pub fn open(bytes: Bytes) -> Result<Self> {
        Self::open_within(bytes, 0)
    }

    pub(crate) fn open_within(bytes: Bytes, depth: usize) -> Result<Self> {
        let (head, checksum) = Head::read_checked(&bytes)?;
        check(head.length == bytes.len(), "its length")?;
        check(xxh3_64(&bytes[Head::bytes(head.rows)..]) == checksum, "the body's checksum")?;
        let body = Body::open(&head, &bytes, depth)?;
        Ok(Self { head, body, bytes })
    }

    /// What is known of the block without its body.
    #[inline]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The block as it is stored.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The block's runs, if it has such: what is done with a value needs to be done once for each.
    pub fn runs(&self) -> Option<&Runs> {
        match &self.body {
            Body::Runs(runs) => Some(runs),
            _ => None,
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    /// An error unless the block's kind is one of those.
    pub(crate) fn expect_kind(&self, is_it: bool) -> Result<()> {
        if is_it { Ok(()) } else { Err(Error::Kind) }
    }
}
