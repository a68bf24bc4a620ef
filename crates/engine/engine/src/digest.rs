//! What tells computations apart: of equal digests, equal rows have equal values. 256 bits of BLAKE3, which nobody makes collide.

use std::fmt;
use std::hash::{Hash, Hasher};

/// What something computes, as a number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A digest in the making.
#[derive(Clone)]
pub struct Digesting(Writer);

/// Takes the bytes that a value's `Hash` writes: what has variants writes which it is, what has a length writes that.
#[derive(Clone)]
struct Writer(blake3::Hasher);

impl Digest {
    /// Of some bytes: what `kind` says that they are.
    #[must_use]
    pub fn of_bytes(kind: &str, bytes: &[u8]) -> Self {
        Digesting::new(kind).with(bytes).end()
    }

    /// Its bytes.
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

impl Digesting {
    /// Of a thing of that kind, no parts of it yet. Kinds are apart whatever their parts are.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self(Writer(blake3::Hasher::new())).with(kind)
    }

    /// One part more. Of a type whose `Hash` takes all that equality asks for.
    #[must_use]
    pub fn with(mut self, part: impl Hash) -> Self {
        part.hash(&mut self.0);
        self
    }

    /// The digest of all parts.
    #[must_use]
    pub fn end(self) -> Digest {
        Digest(*self.0.0.finalize().as_bytes())
    }
}

impl Hasher for Writer {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Only `Hash` of types that hash themselves apart asks for it.
    fn finish(&self) -> u64 {
        let digest = self.0.finalize();
        u64::from_le_bytes(*digest.as_bytes().first_chunk().expect("a digest has 32 bytes"))
    }
}
