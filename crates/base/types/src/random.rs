//! Chance through a trait, so that a failure found by simulation replays from its seed.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use uuid::Uuid;

/// Where chance comes from.
pub trait Random: Send + Sync + std::fmt::Debug {
    /// 64 uniform bits.
    fn next_u64(&self) -> u64;
    /// Fills `bytes`; secrets (salts, nonces, keys) come from here too.
    fn fill(&self, bytes: &mut [u8]);

    /// A random (version 4) UUID.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// The operating system's generator.
#[derive(Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system for chance")]
    fn next_u64(&self) -> u64 {
        rand::rng().next_u64()
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system for chance")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}

/// The same numbers for the same seed: for tests and simulations.
#[derive(Debug)]
pub struct SeededRandom {
    generator: Mutex<StdRng>,
}

impl SeededRandom {
    /// A generator that starts from `seed`.
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
