//! Seeded random choices.

use types::Random;
use types::random::SeededRandom;

pub(super) struct RandomChoices(SeededRandom);

impl RandomChoices {
    pub(super) fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// Returns a number below `count`.
    pub(super) fn below(&self, count: u64) -> u64 {
        self.0.next_u64() % count
    }

    /// Returns true with probability 1 / `count`.
    pub(super) fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn pick<'a, T>(&self, from: &'a [T]) -> &'a T {
        let at = usize::try_from(self.below(from.len() as u64)).expect("an index of a slice");
        &from[at]
    }
}
