//! HyperLogLog sketch of the number of distinct values: exact while small, 4,096 registers after that. Sketches can be
//! merged.
//!
//! The estimate is Ertl's improved one ("New cardinality estimation algorithms for HyperLogLog sketches", 2017, §2.4):
//! unbiased over the complete range without correction tables. The standard error is 1.04 / √4096 = 1.6 %.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[cfg(test)]
mod tests;

const INDEX_BITS: u32 = 12;
const REGISTER_COUNT: usize = 1 << INDEX_BITS;
/// Largest rank: one more than the number of bits behind the index bits.
const RANK_MAX: u8 = (64 - INDEX_BITS) as u8 + 1;
/// Number of distinct hashes stored exactly before registers are used: half the size of the registers.
const EXACT_COUNT_MAX: usize = 256;

/// Sketch of the distinct values added as 64-bit hashes by [`Hll::add_hash`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hll(State);

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Hashes, ascending.
    Exact(Vec<u64>),
    Registers(Box<[u8; REGISTER_COUNT]>),
}

impl Default for Hll {
    fn default() -> Self {
        Self(State::Exact(Vec::new()))
    }
}

impl Hll {
    /// Adds a value by its hash; all 64 bits must be well mixed.
    #[inline]
    pub fn add_hash(&mut self, hash: u64) {
        match &mut self.0 {
            State::Registers(registers) => raise_register(registers, hash),
            State::Exact(hashes) => {
                if let Err(position) = hashes.binary_search(&hash) {
                    hashes.insert(position, hash);
                    if EXACT_COUNT_MAX < hashes.len() {
                        self.use_registers();
                    }
                }
            }
        }
    }

    /// Merges another sketch into this one.
    pub fn merge(&mut self, other: &Hll) {
        match &other.0 {
            State::Exact(hashes) => hashes.iter().for_each(|&hash| self.add_hash(hash)),
            State::Registers(theirs) => {
                for (mine, theirs) in self.use_registers().iter_mut().zip(theirs.iter()) {
                    *mine = (*mine).max(*theirs);
                }
            }
        }
    }

    /// Returns the estimated number of distinct values; exact up to 256.
    #[must_use]
    pub fn estimate(&self) -> u64 {
        let registers = match &self.0 {
            State::Exact(hashes) => return hashes.len() as u64,
            State::Registers(registers) => registers,
        };
        let mut histogram = [0_u32; RANK_MAX as usize + 1];
        for &rank in registers.iter() {
            histogram[usize::from(rank)] += 1;
        }
        let m = REGISTER_COUNT as f64;
        let mut z = m * tau(1.0 - f64::from(histogram[usize::from(RANK_MAX)]) / m);
        for &count in histogram[1..usize::from(RANK_MAX)].iter().rev() {
            z = 0.5 * (z + f64::from(count));
        }
        z += m * sigma(f64::from(histogram[0]) / m);
        (m * m / (2.0 * std::f64::consts::LN_2 * z)).round() as u64
    }

    /// Converts the sketch to registers if it is exact.
    fn use_registers(&mut self) -> &mut [u8; REGISTER_COUNT] {
        if let State::Exact(hashes) = &self.0 {
            let mut registers = Box::new([0; REGISTER_COUNT]);
            hashes.iter().for_each(|&hash| raise_register(&mut registers, hash));
            self.0 = State::Registers(registers);
        }
        match &mut self.0 {
            State::Registers(registers) => registers,
            State::Exact(_) => unreachable!("registers were set above"),
        }
    }
}

#[inline]
fn raise_register(registers: &mut [u8; REGISTER_COUNT], hash: u64) {
    let index = (hash >> (64 - INDEX_BITS)) as usize;
    // The marker bit ends the run of zeros, so that a rank is at most RANK_MAX.
    let rank = ((hash << INDEX_BITS) | (1 << (INDEX_BITS - 1))).leading_zeros() as u8 + 1;
    let register = &mut registers[index];
    *register = (*register).max(rank);
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let mut y = 1.0;
    let mut z = x;
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let mut y = 1.0;
    let mut z = 1.0 - x;
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// Stored as a byte string, whose first byte tells which of the two states follows.
impl Serialize for Hll {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        match &self.0 {
            State::Exact(hashes) => {
                bytes.push(0);
                hashes.iter().for_each(|hash| bytes.extend_from_slice(&hash.to_le_bytes()));
            }
            State::Registers(registers) => {
                bytes.push(1);
                bytes.extend_from_slice(registers.as_slice());
            }
        }
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> Deserialize<'de> for Hll {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = deserializer.deserialize_byte_buf(Bytes)?;
        let (state, content) =
            bytes.split_first().ok_or_else(|| D::Error::custom("HyperLogLog sketch has no bytes"))?;
        match state {
            0 if content.len().is_multiple_of(8) && content.len() <= 8 * EXACT_COUNT_MAX => {
                let hashes: Vec<u64> = content
                    .chunks_exact(8)
                    .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks of eight bytes")))
                    .collect();
                if !hashes.is_sorted_by(|a, b| a < b) {
                    return Err(D::Error::custom("hashes of a HyperLogLog sketch are not in ascending order"));
                }
                Ok(Self(State::Exact(hashes)))
            }
            1 if content.iter().all(|&rank| rank <= RANK_MAX) => {
                let registers = <[u8; REGISTER_COUNT]>::try_from(content)
                    .map_err(|_| D::Error::invalid_length(content.len(), &"4,096 registers"))?;
                Ok(Self(State::Registers(Box::new(registers))))
            }
            _ => Err(D::Error::custom("HyperLogLog sketch has an unknown kind")),
        }
    }
}

struct Bytes;

impl<'de> serde::de::Visitor<'de> for Bytes {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sketch as bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
        Ok(bytes.to_vec())
    }

    fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
        Ok(bytes)
    }

    /// Formats without byte strings, such as JSON, give a list of numbers.
    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = sequence.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}
