//! What a client asks for, in sixteen bytes: a repeat asks for the same.

use xxhash_rust::xxh3::Xxh3;

/// Stands for a statement's text and the values of its parameters, or for data. Two that differ have the same one by accident hardly ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkDigest(pub u128);

/// What a client asks for, part by part.
#[derive(Clone)]
pub struct Work(Box<Xxh3>);

impl Work {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Box::new(Xxh3::new()))
    }

    /// Adds a part; where it ends counts.
    #[must_use]
    pub fn part(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a part that is not there; it differs from all that are.
    #[must_use]
    pub fn absent(mut self) -> Self {
        self.0.update(&u64::MAX.to_be_bytes());
        self
    }

    /// Goes on with data, however that is cut.
    pub fn data(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all parts so far.
    #[must_use]
    pub fn digest(&self) -> WorkDigest {
        WorkDigest(self.0.digest128())
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Work").field(&self.digest()).finish()
    }
}
