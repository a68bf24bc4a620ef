//! Randomness behind a trait, so that failures found by simulation can be replayed from their seed.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use uuid::Uuid;

/// Source of randomness.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// Returns 64 uniformly random bits.
    fn next_u64(&self) -> u64;
    /// Fills `bytes` with random bytes, also for secrets (salts, nonces, keys).
    fn fill(&self, bytes: &mut [u8]);

    /// Returns a random (version 4) UUID.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Cryptographically secure generator, seeded by the operating system.
#[derive(Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that uses the system's generator")]
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that uses the system's generator")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}

/// Deterministic generator for tests and simulations.
#[derive(Debug)]
pub struct SeededRandom {
    generator: Mutex<StdRng>,
}

impl SeededRandom {
    /// Creates a generator whose numbers are determined by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { generator: Mutex::new(StdRng::seed_from_u64(seed)) }
    }
}

impl Random for SeededRandom {
    fn next_u64(&self) -> u64 {
        self.generator.lock().random()
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.generator.lock().fill_bytes(bytes);
    }
}
