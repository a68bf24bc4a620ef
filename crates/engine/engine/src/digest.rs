//! 256-bit BLAKE3 digests that identify computations: computations with equal digests produce equal values for equal
//! rows.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Digest that identifies a computation and its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// Incremental builder of a [`Digest`].
#[derive(Clone)]
pub struct DigestBuilder(Blake3Hasher);

/// Hasher that feeds the bytes written by `Hash` into BLAKE3. Derived `Hash` writes enum discriminants and lengths,
/// so that different values write different bytes.
#[derive(Clone)]
struct Blake3Hasher(blake3::Hasher);

impl Digest {
    /// Computes the digest of raw bytes; `kind` separates byte strings of different meaning.
    #[must_use]
    pub fn from_bytes(kind: &str, bytes: &[u8]) -> Self {
        DigestBuilder::new(kind).with(bytes).finish()
    }

    /// Returns the 32 bytes of the digest.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..8].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl DigestBuilder {
    /// Starts a digest of the given kind. Different kinds never collide, whatever their parts are.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self(Blake3Hasher(blake3::Hasher::new())).with(kind)
    }

    /// Adds a part. Its `GroupHashTable` must cover everything that its equality compares.
    #[must_use]
    pub fn with(mut self, part: impl Hash) -> Self {
        part.hash(&mut self.0);
        self
    }

    /// Returns the digest of all parts added so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(*self.0.0.finalize().as_bytes())
    }
}

impl Hasher for Blake3Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the first 64 bits. Only called by `GroupHashTable` implementations that use the hasher's result.
    fn finish(&self) -> u64 {
        let digest = self.0.finalize();
        u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("a BLAKE3 digest has 32 bytes"))
    }
}
