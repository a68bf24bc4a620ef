//! Loops over lanes, and the layout of packed vectors.
//!
//! Packed vectors have the layout of FastLanes (Afroozeh and Boncz, VLDB 2023). A word of 1,024 bits consists of 1,024
//! / T lanes of T bits. Each lane contains T values of `width` bits, one after the other, and continues in the same
//! lane of the next word. The values at one position of all lanes, a row of lanes, are consecutive; the rows are
//! ordered so that the same bytes can be unpacked with any lane width.

use crate::float_encoding::DecimalEncoding;
use crate::kernels::{Kernels, LaneKernels};
use crate::{Mask, VECTOR_ROWS};

/// Word of 1,024 bits. A packed vector has one word for each bit of its width.
pub type Word = [u8; 128];

/// Order of the groups of eight rows of lanes.
const ROW_GROUP_ORDER: [usize; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// Unsigned integer type that offsets are unpacked into.
pub trait Lane: Copy + Ord + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Width in bits.
    const BITS: usize;
    /// Maximum value.
    const MAX: Self;
    /// Returns the kernels of this lane type.
    #[doc(hidden)]
    fn lane_kernels(kernels: &Kernels) -> &LaneKernels<Self>;
    /// Truncates to the lowest bits.
    fn truncate(value: u64) -> Self;
    /// Zero-extends to 64 bits.
    fn extend(self) -> u64;
    /// Unpacks the value of one row of a packed vector.
    fn unpack_one(packed: &[Word], width: usize, row: usize) -> Self;
}

/// Returns the index of the first value in a row of lanes.
#[inline(always)]
const fn first_value(row: usize) -> usize {
    ROW_GROUP_ORDER[row / 8] * 16 + row % 8 * 128
}

/// Returns the row of lanes and the lane that contain a value.
#[inline(always)]
const fn row_and_lane(value: usize, bits: usize) -> (usize, usize) {
    let lanes = VECTOR_ROWS / bits;
    let lane = value % lanes;
    // Of the value's index modulo 128, the bits above the lane select the group of eight rows.
    let row = ROW_GROUP_ORDER[(value - lane) % 128 / 16] * 8 + value / 128;
    (row, lane)
}

macro_rules! lane {
    ($lane:ident, $bytes:literal, $bits:literal) => {
        impl Lane for $lane {
            const BITS: usize = $bits;
            const MAX: Self = $lane::MAX;

            fn lane_kernels(kernels: &Kernels) -> &LaneKernels<Self> {
                &kernels.$lane
            }

            #[inline(always)]
            fn truncate(value: u64) -> Self {
                value as $lane
            }

            #[inline(always)]
            fn extend(self) -> u64 {
                self.into()
            }

            #[inline(always)]
            fn unpack_one(packed: &[Word], width: usize, row: usize) -> Self {
                if width == 0 {
                    return 0;
                }
                let (row, lane) = row_and_lane(row, $bits);
                let load = |word: usize| {
                    $lane::from_le_bytes(packed[word][lane * $bytes..][..$bytes].try_into().expect("size of a lane"))
                };
                let (word, shift) = (row * width / $bits, row * width % $bits);
                let mut value = load(word) >> shift;
                if $bits < shift + width {
                    value |= load(word + 1) << ($bits - shift);
                }
                value & ($lane::MAX >> ($bits - width))
            }
        }

        pub(super) mod $lane {
            use super::*;

            const LANES: usize = VECTOR_ROWS / $bits;

            #[inline(always)]
            fn load(word: &Word, lane: usize) -> $lane {
                $lane::from_le_bytes(word[lane * $bytes..][..$bytes].try_into().expect("size of a lane"))
            }

            /// Unpacks a vector. Rows are unrolled for each width, so that every shift is a constant; the compiler
            /// vectorizes the loop over lanes.
            #[inline(always)]
            pub(in super::super) fn unpack<const WIDTH: usize>(packed: &[Word], values: &mut [$lane; VECTOR_ROWS]) {
                if WIDTH == 0 {
                    values.fill(0);
                    return;
                }
                let packed: &[Word; WIDTH] = packed.first_chunk().expect("a packed vector has a word per bit");
                let mask = $lane::MAX >> (($bits - WIDTH) % $bits);
                for lane in 0..LANES {
                    let mut word = load(&packed[0], lane);
                    seq_macro::seq!(row in 0..$bits {{
                        let (at, shift) = (row * WIDTH / $bits, row * WIDTH % $bits);
                        let mut value = word >> shift;
                        if $bits <= shift + WIDTH && at + 1 < WIDTH {
                            word = load(&packed[at + 1], lane);
                            if $bits < shift + WIDTH {
                                value |= word << ($bits - shift);
                            }
                        }
                        values[first_value(row) + lane] = value & mask;
                    }});
                }
            }

            #[inline(always)]
            pub(in super::super) fn pack(values: &[$lane; VECTOR_ROWS], width: usize, packed: &mut [Word]) {
                let packed = &mut packed[..width];
                packed.fill([0; 128]);
                if width == 0 {
                    return;
                }
                let mask = $lane::MAX >> ($bits - width);
                for row in 0..$bits {
                    let values: &[$lane; LANES] = values[first_value(row)..].first_chunk().expect("LANES values");
                    let (word, shift) = (row * width / $bits, row * width % $bits);
                    merge(&mut packed[word], |lane| (values[lane] & mask) << shift);
                    if $bits < shift + width {
                        merge(&mut packed[word + 1], |lane| (values[lane] & mask) >> ($bits - shift));
                    }
                }
            }

            #[inline(always)]
            fn merge(word: &mut Word, bits: impl Fn(usize) -> $lane) {
                let lanes: &mut [[u8; $bytes]] = word.as_chunks_mut().0;
                for (lane, bytes) in lanes.iter_mut().enumerate() {
                    *bytes = ($lane::from_le_bytes(*bytes) | bits(lane)).to_le_bytes();
                }
            }

            /// Returns the mask of the values in `low..=low + span`; `bits` converts 64 flags to bits.
            #[inline(always)]
            pub(in super::super) fn between(
                values: &[$lane; VECTOR_ROWS],
                low: $lane,
                span: $lane,
                bits: impl Fn(&[u8; 64]) -> u64,
            ) -> Mask {
                let mut mask = Mask::default();
                for (word, values) in mask.iter_mut().zip(values.as_chunks::<64>().0) {
                    let mut flags = [0; 64];
                    for (flag, value) in flags.iter_mut().zip(values) {
                        *flag = if value.wrapping_sub(low) <= span { u8::MAX } else { 0 };
                    }
                    *word = bits(&flags);
                }
                mask
            }

            #[inline(always)]
            pub(in super::super) fn lookup(
                values: &[$lane; VECTOR_ROWS],
                shift: u64,
                table: &[u8],
                bits: impl Fn(&[u8; 64]) -> u64,
            ) -> Mask {
                let mut mask = Mask::default();
                for (word, values) in mask.iter_mut().zip(values.as_chunks::<64>().0) {
                    let mut flags = [0; 64];
                    for (flag, value) in flags.iter_mut().zip(values) {
                        let place = u64::from(*value).wrapping_add(shift) as usize;
                        *flag = table[place & (table.len() - 1)];
                    }
                    *word = bits(&flags);
                }
                mask
            }

            #[inline(always)]
            pub(in super::super) fn widen(
                values: &[$lane; VECTOR_ROWS],
                base: i64,
                wide: &mut [i64; VECTOR_ROWS],
            ) {
                for (wide, value) in wide.iter_mut().zip(values) {
                    *wide = base.wrapping_add(*value as i64);
                }
            }

            #[inline(always)]
            pub(in super::super) fn narrow(
                wide: &[i64; VECTOR_ROWS],
                base: i64,
                values: &mut [$lane; VECTOR_ROWS],
            ) {
                for (value, wide) in values.iter_mut().zip(wide) {
                    *value = wide.wrapping_sub(base) as $lane;
                }
            }
        }
    };
}

lane!(u8, 1, 8);
lane!(u16, 2, 16);
lane!(u32, 4, 32);
lane!(u64, 8, 64);

#[inline(always)]
pub(super) fn min_max(values: &[i64]) -> (i64, i64) {
    values.iter().fold((i64::MAX, i64::MIN), |(min, max), value| (min.min(*value), max.max(*value)))
}

#[inline(always)]
pub(super) fn count_changes(values: &[i64]) -> usize {
    values.iter().zip(values.iter().skip(1)).filter(|(before, value)| before != value).count()
}

#[inline(always)]
pub(super) fn decode_decimals(
    digits: &[i64; VECTOR_ROWS],
    decimals: DecimalEncoding,
    numbers: &mut [f64; VECTOR_ROWS],
) {
    for (number, digits) in numbers.iter_mut().zip(digits) {
        *number = decimals.decode(*digits);
    }
}

/// Encodes numbers, given by their keys, as decimal digits; returns the mask of those that are restored exactly.
#[inline(always)]
pub(super) fn encode_decimals(
    keys: &[i64; VECTOR_ROWS],
    decimals: DecimalEncoding,
    are_single: bool,
    digits: &mut [i64; VECTOR_ROWS],
    bits: impl Fn(&[u8; 64]) -> u64,
) -> Mask {
    let mut mask = Mask::default();
    let parts = keys.as_chunks::<64>().0.iter().zip(digits.as_chunks_mut::<64>().0);
    for (word, (keys, digits)) in mask.iter_mut().zip(parts) {
        let mut flags = [0; 64];
        for ((flag, digits), key) in flags.iter_mut().zip(digits).zip(keys) {
            let (found, is_exact) = if are_single { decimals.encode_f32(*key) } else { decimals.encode_f64(*key) };
            *digits = found;
            *flag = if is_exact { u8::MAX } else { 0 };
        }
        *word = bits(&flags);
    }
    mask
}
