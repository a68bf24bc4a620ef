//! Digests of statements and data: a repeated statement has the same digest.

use xxhash_rust::xxh3::Xxh3;

/// Digest of a statement's text and parameter values, or of data: 128 bits of XXH3, so that collisions are negligible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementDigest(pub u128);

/// Incremental hasher of a statement or of data.
#[derive(Clone)]
pub struct StatementHasher(Box<Xxh3>);

impl StatementHasher {
    /// Creates a hasher of no parts.
    #[must_use]
    pub fn new() -> Self {
        Self(Box::new(Xxh3::new()))
    }

    /// Adds a part with its length, so that part boundaries count.
    #[must_use]
    pub fn with_part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds an absent part, which differs from every present one.
    #[must_use]
    pub fn with_absent_part(mut self) -> Self {
        self.0.update(&u64::MAX.to_be_bytes());
        self
    }

    /// Adds data without its length, so that it may arrive in pieces of any size.
    pub fn add_data(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of all parts so far.
    #[must_use]
    pub fn digest(&self) -> StatementDigest {
        StatementDigest(self.0.digest128())
    }
}

impl Default for StatementHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for StatementHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("StatementHasher").field(&self.digest()).finish()
    }
}
