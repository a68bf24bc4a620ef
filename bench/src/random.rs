//! Random numbers and texts for benchmarks: uniform and Zipfian distributions.

use types::Random;
use types::random::SeededRandom;

#[cfg(test)]
mod tests;

/// Random number generator of one client, seeded.
#[derive(Debug)]
pub(crate) struct RandomGenerator(SeededRandom);

impl RandomGenerator {
    #[must_use]
    pub(crate) fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// Returns a uniform number from 0 to below `end`.
    pub(crate) fn next_below(&self, end: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(end);
        (wide >> 64) as u64
    }

    /// Returns a uniform number from `first` to `last`, both included.
    pub(crate) fn next_in_range(&self, first: i64, last: i64) -> i64 {
        let width = u64::try_from(last - first + 1).unwrap_or(1);
        first + i64::try_from(self.next_below(width)).unwrap_or(0)
    }

    /// Returns a uniform number from 0 to below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn next_fraction(&self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a text of `length` letters, digits, `-` and `_`.
    pub(crate) fn next_text(&self, length: usize) -> String {
        const TEXT_CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let mut text = String::with_capacity(length);
        while text.len() < length {
            let mut bits = self.0.next_u64();
            for _ in 0..10.min(length - text.len()) {
                text.push(char::from(TEXT_CHARACTERS[(bits & 63) as usize]));
                bits >>= 6;
            }
        }
        text
    }

    /// Returns a text of `first` to `last` characters.
    pub(crate) fn next_text_between(&self, first: i64, last: i64) -> String {
        self.next_text(usize::try_from(self.next_in_range(first, last)).unwrap_or(0))
    }
}

/// Zipfian distribution over numbers from 0, by Gray's method with exponent 0.99, as in YCSB.
#[derive(Debug, Clone)]
pub(crate) struct ZipfDistribution {
    items: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

/// Exponent of YCSB's Zipfian distributions.
const THETA: f64 = 0.99;

impl ZipfDistribution {
    /// Creates a distribution over the numbers below `items`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the items are far fewer than 2^53")]
    pub(crate) fn new(items: u64) -> Self {
        let zeta = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / all);
        Self { items, zeta: all, alpha: 1.0 / (1.0 - THETA), eta }
    }

    /// Draws a number; 0 is the most frequent.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the items is one of them"
    )]
    pub(crate) fn draw(&self, random: &RandomGenerator) -> u64 {
        let unit = random.next_fraction();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(THETA) {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.items - 1)
    }

    /// Draws a number; the frequent ones are spread over the whole range by hashing.
    pub(crate) fn draw_scrambled(&self, random: &RandomGenerator) -> u64 {
        hash_fnv(self.draw(random)) % self.items
    }
}

/// Returns the FNV-1a hash of a number's bytes.
#[must_use]
pub(crate) fn hash_fnv(number: u64) -> u64 {
    number
        .to_le_bytes()
        .into_iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3))
}
