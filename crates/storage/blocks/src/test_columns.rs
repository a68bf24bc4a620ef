//! Test columns of all shapes and of the sizes at which vectors and blocks end.

use proptest::prelude::*;

use crate::{Comparison, LikePattern, TextCondition, ValidityBitmap};

/// Distribution of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Constant,
    Ascending,
    Narrow(u32),
    Runs(u64),
    Outliers(u32),
    Extremes,
    Random,
}

/// Distribution of a column's NULLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    None,
    Few,
    Most,
    All,
    Runs,
}

/// Description of a generated column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) shape: Shape,
    pub(crate) nulls: Nulls,
    pub(crate) rows: usize,
    pub(crate) seed: u64,
}

/// Returns pseudo-random numbers determined by `seed`.
pub(crate) fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    })
}

/// Numbers of rows around the ends of vectors and blocks.
pub(crate) const SIZES: [usize; 9] = [0, 1, 2, 1023, 1024, 1025, 5000, 65_535, 65_536];

impl Column {
    /// Generates the values as 64-bit integers.
    pub(crate) fn integers(self) -> Vec<i64> {
        let first = numbers(!self.seed).next().unwrap_or_default() as i64;
        let mut last = first;
        let mut left = 0;
        numbers(self.seed)
            .take(self.rows)
            .enumerate()
            .map(|(row, number)| match self.shape {
                Shape::Constant => first,
                Shape::Ascending => first.wrapping_add(row as i64 * 4 + (number & 3) as i64) & (i64::MAX >> 1),
                Shape::Narrow(bits) => (first >> 2) + (number & mask(bits)) as i64,
                Shape::Runs(length) => {
                    if left == 0 {
                        left = number % (2 * length) + 1;
                        last = (number >> 40) as i64;
                    }
                    left -= 1;
                    last
                }
                Shape::Outliers(bits) if number >> 32 & 0x1ff == 0 => (number & mask(bits + 20)) as i64 - 7,
                Shape::Outliers(bits) => (number & mask(bits)) as i64,
                Shape::Extremes => [i64::MIN, i64::MAX, 0, -1, 1, i64::MIN + 1, i64::MAX - 1][(number % 7) as usize],
                Shape::Random => number as i64,
            })
            .collect()
    }

    /// Generates the values as doubles: with few decimals for narrow shapes, any bits for random ones.
    pub(crate) fn floats(self) -> Vec<f64> {
        const ENDS: [f64; 7] = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX];
        let scale = [1.0, 10.0, 100.0, 10_000.0, 1e9][(self.seed % 5) as usize];
        let of_integer = |(row, integer): (usize, i64)| match self.shape {
            Shape::Random => f64::from_bits(integer as u64),
            Shape::Extremes => ENDS[integer.rem_euclid(7) as usize],
            Shape::Outliers(_) if row % 301 == 7 => (integer as f64).sqrt() / 3.0,
            Shape::Narrow(bits) => ((integer & mask(bits.min(50)) as i64) - 1000) as f64 / scale,
            _ => (integer >> 20) as f64 / scale,
        };
        self.integers().into_iter().enumerate().map(of_integer).collect()
    }

    /// Generates the bytes of the validity bitmap; `None` if there are no NULLs.
    pub(crate) fn validity(self) -> Option<Vec<u8>> {
        let bits = numbers(self.seed ^ 0x5555).take(self.rows.div_ceil(8));
        Some(match self.nulls {
            Nulls::None => return None,
            Nulls::Few => {
                bits.map(|bits| bits as u8 | (bits >> 8) as u8 | (bits >> 16) as u8 | (bits >> 24) as u8).collect()
            }
            Nulls::Most => bits.map(|bits| bits as u8 & (bits >> 8) as u8 & (bits >> 16) as u8).collect(),
            Nulls::All => vec![0; self.rows.div_ceil(8)],
            Nulls::Runs => {
                (0..self.rows.div_ceil(8)).map(|byte| if byte / 40 % 3 == 0 { 0 } else { u8::MAX }).collect()
            }
        })
    }
}

fn mask(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX >> (64 - bits.min(64)) }
}

/// Whether a row of a column is not NULL.
pub(crate) fn is_valid(validity: Option<&Vec<u8>>, row: usize) -> bool {
    validity.is_none_or(|bytes| bytes[row / 8] >> (row % 8) & 1 == 1)
}

/// Borrows the result of [`Column::validity`] as a bitmap.
pub(crate) fn bitmap(validity: Option<&Vec<u8>>) -> Option<ValidityBitmap<'_>> {
    validity.map(|bytes| ValidityBitmap::new(bytes, 0))
}

/// Generates columns of all shapes, NULL distributions and sizes.
pub(crate) fn columns() -> impl Strategy<Value = Column> {
    let shapes = prop_oneof![
        Just(Shape::Constant),
        Just(Shape::Ascending),
        (0u32..63).prop_map(Shape::Narrow),
        (1u64..3000).prop_map(Shape::Runs),
        (0u32..40).prop_map(Shape::Outliers),
        Just(Shape::Extremes),
        Just(Shape::Random),
    ];
    let nulls = prop_oneof![3 => Just(Nulls::None), 2 => Just(Nulls::Few), 1 => Just(Nulls::Most), 1 => Just(Nulls::All), 1 => Just(Nulls::Runs)];
    let rows = prop_oneof![proptest::sample::select(&SIZES[..]), 0..4000usize];
    (shapes, nulls, rows, any::<u64>()).prop_map(|(shape, nulls, rows, seed)| Column { shape, nulls, rows, seed })
}

/// Returns the number of cases of a property test; nightly runs try more.
pub(crate) fn cases(some: u32) -> ProptestConfig {
    let many = if std::env::var_os("KILN_NIGHTLY").is_some() { 50 } else { 1 };
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(some * many) }
}

/// Generates realistic strings: words and numbers, some long, some empty, some with bytes that are not valid UTF-8.
pub(crate) fn words(count: usize, seed: u64) -> Vec<Vec<u8>> {
    const WORDS: [&str; 10] =
        ["special", "requests", "packages", "carefully", "final", "deposits", "ab", "Customer#", "über", ""];
    let word = |number: u64| {
        let mut word = Vec::new();
        for part in numbers(number % 700).take((number >> 20) as usize % 7) {
            word.extend_from_slice(WORDS[part as usize % 10].as_bytes());
            match part >> 32 & 7 {
                0 => word.extend_from_slice((part >> 40).to_string().as_bytes()),
                1 => word.extend_from_slice(&[0, 255, part as u8]),
                _ => word.push(b' '),
            }
        }
        word
    };
    numbers(seed).take(count).map(word).collect()
}

/// Returns the condition `[NOT] LIKE 'prefix%part%suffix'`.
pub(crate) fn like(prefix: &[u8], parts: &[&[u8]], suffix: &[u8], is_negated: bool) -> TextCondition {
    let parts = parts.iter().map(|part| part.to_vec()).collect();
    let pattern = LikePattern { prefix: prefix.to_vec(), parts, suffix: suffix.to_vec() };
    TextCondition::Like { pattern, is_negated }
}

/// Generates conditions on some of the strings and on parts of them.
pub(crate) fn conditions_on(words: &[Vec<u8>], seed: u64) -> Vec<TextCondition> {
    let mut constants = vec![b"".to_vec(), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(), b"special ".to_vec()];
    for number in numbers(seed).take(if words.is_empty() { 0 } else { 3 }) {
        let word = &words[number as usize % words.len()];
        constants.extend([word.clone(), word[..word.len() / 2].to_vec(), [word.as_slice(), b"a"].concat()]);
    }
    let mut conditions = vec![TextCondition::IsNull, TextCondition::IsNotNull, TextCondition::In(constants.clone())];
    for constant in &constants {
        conditions.extend(Comparison::ALL.map(|comparison| TextCondition::Compare(comparison, constant.clone())));
        let (first, second) = constant.split_at(constant.len() / 2);
        for is_negated in [false, true] {
            conditions.push(like(constant, &[], b"", is_negated));
            conditions.push(like(b"", &[], second, is_negated));
            conditions.push(like(first, &[], second, is_negated));
            conditions.push(like(b"", &[constant], b"", is_negated));
            conditions.push(like(b"", &[b"special", second], b"", is_negated));
            conditions.push(like(first, &[b"special"], b"", is_negated));
        }
    }
    conditions.extend(constants.windows(2).map(|pair| TextCondition::Between(pair[0].clone(), pair[1].clone())));
    conditions.push(like(b"", &[], b"", false));
    conditions
}
