//! Kernels: loops over vectors, compiled for several instruction sets, of which one is chosen at first use.
//!
//! This file is the safe interface: it returns [`Kernels`] only for instruction sets that the processor supports.
//!
//! In reading order:
//! - `lane_kernels.rs`: the loops over lanes and the layout of packed vectors
//! - `integer_arithmetic.rs`: the loops over 64-bit integers
//! - `flags_to_mask.rs`: flags to bit masks
//! - `instruction_sets.rs`: the macro that compiles all loops for an instruction set
//! - `avx2.rs`, `avx512.rs`: comparisons written with intrinsics

#![expect(unsafe_code, reason = "functions with target features may be called only on processors that have them")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod flags_to_mask;
mod instruction_sets;
mod integer_arithmetic;
mod lane_kernels;

use std::sync::OnceLock;

pub use lane_kernels::{Lane, Word};

pub use crate::float_encoding::DecimalEncoding;
use crate::{Mask, VECTOR_ROWS};

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// The instructions that every processor of the architecture has.
    Baseline,
    /// x86-64 with AVX2 and BMI: `x86-64-v3`.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL: `x86-64-v4`.
    Avx512,
}

impl Isa {
    /// Returns the name, as used in the environment variable `KILN_ISA`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Kernels compiled for one instruction set.
pub struct Kernels {
    isa: Isa,
    u8: LaneKernels<u8>,
    u16: LaneKernels<u16>,
    u32: LaneKernels<u32>,
    u64: LaneKernels<u64>,
    min_max: unsafe fn(&[i64]) -> (i64, i64),
    count_changes: unsafe fn(&[i64]) -> usize,
    decode_decimals: unsafe fn(&[i64; VECTOR_ROWS], DecimalEncoding, &mut [f64; VECTOR_ROWS]),
    encode_f64_decimals: EncodeDecimalsFn,
    encode_f32_decimals: EncodeDecimalsFn,
    linear_combination: unsafe fn(&[i64], i64, &[i64], i64, &mut [i64]),
    scale_and_shift: unsafe fn(&[i64], i64, i64, &mut [i64]),
    product: unsafe fn(&[i64], &[i64], &mut [i64]),
    add_to_4_sums: unsafe fn(&[i64], &[u32], &mut [i64; 4]),
    add_to_8_sums: unsafe fn(&[i64], &[u32], &mut [i64; 8]),
}

type EncodeDecimalsFn = unsafe fn(&[i64; VECTOR_ROWS], DecimalEncoding, &mut [i64; VECTOR_ROWS]) -> Mask;
type UnpackFn<T> = unsafe fn(&[Word], &mut [T; VECTOR_ROWS]);

/// Kernels for one lane type.
pub struct LaneKernels<T: 'static> {
    /// Unpack functions by width.
    unpack: &'static [UnpackFn<T>],
    pack: unsafe fn(&[T; VECTOR_ROWS], usize, &mut [Word]),
    between: unsafe fn(&[T; VECTOR_ROWS], T, T) -> Mask,
    retain_between: unsafe fn(&[T; VECTOR_ROWS], T, T, &mut Mask),
    lookup: unsafe fn(&[T; VECTOR_ROWS], u64, &[u8]) -> Mask,
    widen: unsafe fn(&[T; VECTOR_ROWS], i64, &mut [i64; VECTOR_ROWS]),
    narrow: unsafe fn(&[i64; VECTOR_ROWS], i64, &mut [T; VECTOR_ROWS]),
}

impl Kernels {
    /// Returns the best kernels that this processor supports, or those named by the environment variable `KILN_ISA`.
    pub fn get() -> &'static Self {
        static BEST: OnceLock<&'static Kernels> = OnceLock::new();
        BEST.get_or_init(|| {
            let requested = std::env::var("KILN_ISA").ok();
            let named = requested.and_then(|name| Self::available().find(|kernels| kernels.isa.name() == name));
            named.or_else(|| Self::available().last()).expect("the baseline is always available")
        })
    }

    /// Iterates over the kernels that this processor supports, the best last.
    pub fn available() -> impl Iterator<Item = &'static Self> {
        instruction_sets::ALL.iter().copied().filter(|kernels| is_supported(kernels.isa))
    }

    /// Returns the instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Unpacks 1,024 offsets of `width` bits into lanes.
    ///
    /// # Panics
    /// If a lane has fewer bits, or there are fewer words than `width`.
    pub fn unpack<T: Lane>(&self, packed: &[Word], width: usize, lanes: &mut [T; VECTOR_ROWS]) {
        let unpack = T::lane_kernels(self).unpack[width];
        // SAFETY: `available` returns only kernels whose instruction set the processor supports.
        unsafe { unpack(packed, lanes) }
    }

    /// Packs the lowest `width` bits of each lane into `width` words.
    ///
    /// # Panics
    /// If a lane has fewer bits, or there is no room for `width` words.
    pub fn pack<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], width: usize, packed: &mut [Word]) {
        assert!(width <= T::BITS, "{width} bits of {}", T::BITS);
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).pack)(lanes, width, packed) }
    }

    /// Returns the mask of the lanes in `low..=low + span`.
    pub fn mask_between<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], low: T, span: T) -> Mask {
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).between)(lanes, low, span) }
    }

    /// Removes from `mask` the lanes outside of `low..=low + span`.
    pub fn retain_between<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], low: T, span: T, mask: &mut Mask) {
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).retain_between)(lanes, low, span, mask) }
    }

    /// Returns the mask of the lanes for which `table[lane + shift]` is 255 rather than 0. The index is taken modulo
    /// the table's length.
    ///
    /// # Panics
    /// If the table's length is not a power of two.
    pub fn mask_by_lookup<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], shift: u64, table: &[u8]) -> Mask {
        assert!(table.len().is_power_of_two(), "the lookup table's length {} is not a power of two", table.len());
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).lookup)(lanes, shift, table) }
    }

    /// Computes `base + lane` for each lane, wrapping around.
    pub fn widen<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], base: i64, values: &mut [i64; VECTOR_ROWS]) {
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).widen)(lanes, base, values) }
    }

    /// Computes the lowest bits of `value - base` for each value.
    pub fn narrow<T: Lane>(&self, values: &[i64; VECTOR_ROWS], base: i64, lanes: &mut [T; VECTOR_ROWS]) {
        // SAFETY: as in `unpack`.
        unsafe { (T::lane_kernels(self).narrow)(values, base, lanes) }
    }

    /// Returns the minimum and the maximum.
    ///
    /// # Panics
    /// If there are no values.
    pub fn min_max(&self, values: &[i64]) -> (i64, i64) {
        assert!(!values.is_empty(), "minimum and maximum of no values");
        // SAFETY: as in `unpack`.
        unsafe { (self.min_max)(values) }
    }

    /// Decodes decimal digits to numbers.
    pub fn decode_decimals(
        &self,
        digits: &[i64; VECTOR_ROWS],
        decimals: DecimalEncoding,
        numbers: &mut [f64; VECTOR_ROWS],
    ) {
        // SAFETY: as in `unpack`.
        unsafe { (self.decode_decimals)(digits, decimals, numbers) }
    }

    /// Encodes numbers, given by their keys, as decimal digits; returns the mask of those that the digits restore
    /// exactly.
    pub fn encode_decimals(
        &self,
        keys: &[i64; VECTOR_ROWS],
        decimals: DecimalEncoding,
        are_single: bool,
        digits: &mut [i64; VECTOR_ROWS],
    ) -> Mask {
        let kernel = if are_single { self.encode_f32_decimals } else { self.encode_f64_decimals };
        // SAFETY: as in `unpack`.
        unsafe { kernel(keys, decimals, digits) }
    }

    /// Computes `x * f + y * g` for each pair, wrapping around, up to the shortest slice.
    pub fn linear_combination(&self, x: &[i64], f: i64, y: &[i64], g: i64, out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.linear_combination)(x, f, y, g, out) }
    }

    /// Computes `x * f + c` for each value, wrapping around.
    pub fn scale_and_shift(&self, x: &[i64], f: i64, c: i64, out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.scale_and_shift)(x, f, c, out) }
    }

    /// Computes `x * y` for each pair, wrapping around.
    pub fn product(&self, x: &[i64], y: &[i64], out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.product)(x, y, out) }
    }

    /// Adds each value to the sum of its group, wrapping around. Groups above 7 are ignored. `few` promises that no
    /// group is above 3.
    pub fn add_to_sums(&self, values: &[i64], groups: &[u32], few_groups: bool, sums: &mut [i64; 8]) {
        if few_groups {
            let sums = sums.first_chunk_mut::<4>().expect("the array has 8 elements");
            // SAFETY: as in `unpack`.
            unsafe { (self.add_to_4_sums)(values, groups, sums) }
        } else {
            // SAFETY: as in `unpack`.
            unsafe { (self.add_to_8_sums)(values, groups, sums) }
        }
    }

    /// Returns the number of values that differ from their predecessor.
    pub fn count_changes(&self, values: &[i64]) -> usize {
        // SAFETY: as in `unpack`.
        unsafe { (self.count_changes)(values) }
    }
}

/// Prefetches packed words into the second-level cache, which can have more fetches in flight than the first-level
/// cache. The processor's own prefetcher does not look beyond the work on one vector.
pub fn prefetch(words: &[Word]) {
    #[cfg(target_arch = "x86_64")]
    for line in words.as_flattened().as_chunks::<64>().0 {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = words;
}

/// Whether the processor supports an instruction set.
#[cfg(target_arch = "x86_64")]
fn is_supported(isa: Isa) -> bool {
    macro_rules! all {
        ($($feature:tt)*) => { $(is_x86_feature_detected!($feature))&&* };
    }
    let avx2 = || all!("avx2" "bmi1" "bmi2" "lzcnt" "popcnt");
    match isa {
        Isa::Baseline => true,
        Isa::Avx2 => avx2(),
        Isa::Avx512 => avx2() && all!("avx512f" "avx512bw" "avx512dq" "avx512vl"),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_supported(isa: Isa) -> bool {
    isa == Isa::Baseline
}

#[cfg(test)]
mod tests;
