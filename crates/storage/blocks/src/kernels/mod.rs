//! The loops over 1,024 values, each compiled for several instruction sets and chosen once, when the first is asked for.
//!
//! `lane.rs` has the loops as they are written, `variant.rs` the macro that compiles them for an instruction set, this file the safe
//! border: a `Kernels` can only be had of an instruction set that the processor has.

#![expect(unsafe_code, reason = "functions of an instruction set may be called only where the processor has it")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bits;
mod lane;
mod numbers;
mod variant;

use std::sync::OnceLock;

pub use lane::{Lane, Word};

pub use crate::float::Decimals;
use crate::{Mask, VECTOR_ROWS};

/// An instruction set that the kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isa {
    /// What every processor of the architecture has.
    Baseline,
    /// x86-64 with AVX2 and BMI: `x86-64-v3`.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL: `x86-64-v4`.
    Avx512,
}

impl Isa {
    /// As `KILN_ISA` names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The kernels of one instruction set.
pub struct Kernels {
    isa: Isa,
    u8: LaneKernels<u8>,
    u16: LaneKernels<u16>,
    u32: LaneKernels<u32>,
    u64: LaneKernels<u64>,
    bounds: unsafe fn(&[i64]) -> (i64, i64),
    changes: unsafe fn(&[i64]) -> usize,
    decimals: unsafe fn(&[i64; VECTOR_ROWS], Decimals, &mut [f64; VECTOR_ROWS]),
    digits: Digits,
    singles_digits: Digits,
    linear: unsafe fn(&[i64], i64, &[i64], i64, &mut [i64]),
    shift: unsafe fn(&[i64], i64, i64, &mut [i64]),
    product: unsafe fn(&[i64], &[i64], &mut [i64]),
    sums_of_4: unsafe fn(&[i64], &[u32], &mut [i64; 4]),
    sums_of_8: unsafe fn(&[i64], &[u32], &mut [i64; 8]),
}

type Digits = unsafe fn(&[i64; VECTOR_ROWS], Decimals, &mut [i64; VECTOR_ROWS]) -> Mask;
type Unpack<T> = unsafe fn(&[Word], &mut [T; VECTOR_ROWS]);

/// The kernels of one lane type.
pub struct LaneKernels<T: 'static> {
    /// By width.
    unpack: &'static [Unpack<T>],
    pack: unsafe fn(&[T; VECTOR_ROWS], usize, &mut [Word]),
    between: unsafe fn(&[T; VECTOR_ROWS], T, T) -> Mask,
    retain_between: unsafe fn(&[T; VECTOR_ROWS], T, T, &mut Mask),
    lookup: unsafe fn(&[T; VECTOR_ROWS], u64, &[u8]) -> Mask,
    widen: unsafe fn(&[T; VECTOR_ROWS], i64, &mut [i64; VECTOR_ROWS]),
    narrow: unsafe fn(&[i64; VECTOR_ROWS], i64, &mut [T; VECTOR_ROWS]),
}

impl Kernels {
    /// The best that this processor can run, or those that `KILN_ISA` names: to measure and to test the others.
    pub fn get() -> &'static Self {
        static BEST: OnceLock<&'static Kernels> = OnceLock::new();
        BEST.get_or_init(|| {
            let asked = std::env::var("KILN_ISA").ok();
            let named = asked.and_then(|name| Self::available().find(|kernels| kernels.isa.name() == name));
            named.or_else(|| Self::available().last()).expect("the baseline is always there")
        })
    }

    /// All that this processor can run, the best last.
    pub fn available() -> impl Iterator<Item = &'static Self> {
        variant::ALL.iter().copied().filter(|kernels| has(kernels.isa))
    }

    /// What they are compiled for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Unpacks offsets of `width` bits into lanes.
    ///
    /// # Panics
    /// If a lane has fewer bits, or there are fewer words than `width`.
    pub fn unpack<T: Lane>(&self, packed: &[Word], width: usize, lanes: &mut [T; VECTOR_ROWS]) {
        let unpack = T::of(self).unpack[width];
        // SAFETY: the processor has the instruction set of every `Kernels` that can be had.
        unsafe { unpack(packed, lanes) }
    }

    /// Packs the lowest `width` bits of each lane.
    ///
    /// # Panics
    /// If a lane has fewer bits, or there is no room for `width` words.
    pub fn pack<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], width: usize, packed: &mut [Word]) {
        assert!(width <= T::BITS, "{width} bits of {}", T::BITS);
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).pack)(lanes, width, packed) }
    }

    /// Which lanes are from `low` to `low + span`.
    pub fn between<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], low: T, span: T) -> Mask {
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).between)(lanes, low, span) }
    }

    /// Takes from a mask the lanes that are not from `low` to `low + span`.
    pub fn retain_between<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], low: T, span: T, mask: &mut Mask) {
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).retain_between)(lanes, low, span, mask) }
    }

    /// Which lanes, each plus `shift`, are places in a table that hold 255 and not 0. The table's length is a power of two, and higher
    /// bits of a place are ignored.
    ///
    /// # Panics
    /// If the table has another length.
    pub fn lookup<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], shift: u64, table: &[u8]) -> Mask {
        assert!(table.len().is_power_of_two(), "a table of {} places", table.len());
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).lookup)(lanes, shift, table) }
    }

    /// Adds a base to each lane.
    pub fn widen<T: Lane>(&self, lanes: &[T; VECTOR_ROWS], base: i64, values: &mut [i64; VECTOR_ROWS]) {
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).widen)(lanes, base, values) }
    }

    /// The lowest bits of the distance of each value from a base.
    pub fn narrow<T: Lane>(&self, values: &[i64; VECTOR_ROWS], base: i64, lanes: &mut [T; VECTOR_ROWS]) {
        // SAFETY: as in `unpack`.
        unsafe { (T::of(self).narrow)(values, base, lanes) }
    }

    /// The least and the greatest value.
    ///
    /// # Panics
    /// If there is none.
    pub fn bounds(&self, values: &[i64]) -> (i64, i64) {
        assert!(!values.is_empty(), "bounds of no values");
        // SAFETY: as in `unpack`.
        unsafe { (self.bounds)(values) }
    }

    /// The numbers that digits stand for.
    pub fn decimals(&self, digits: &[i64; VECTOR_ROWS], decimals: Decimals, numbers: &mut [f64; VECTOR_ROWS]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.decimals)(digits, decimals, numbers) }
    }

    /// The digits of the numbers of keys, and which of them stand for their number.
    pub fn digits(
        &self,
        keys: &[i64; VECTOR_ROWS],
        decimals: Decimals,
        are_single: bool,
        digits: &mut [i64; VECTOR_ROWS],
    ) -> Mask {
        let kernel = if are_single { self.singles_digits } else { self.digits };
        // SAFETY: as in `unpack`.
        unsafe { kernel(keys, decimals, digits) }
    }

    /// `x * f + y * g` of each pair, wrapping around; as many as the shortest of all has.
    pub fn linear(&self, x: &[i64], f: i64, y: &[i64], g: i64, out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.linear)(x, f, y, g, out) }
    }

    /// `x * f + c` of each value, wrapping around.
    pub fn shift(&self, x: &[i64], f: i64, c: i64, out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.shift)(x, f, c, out) }
    }

    /// `x * y` of each pair, wrapping around.
    pub fn product(&self, x: &[i64], y: &[i64], out: &mut [i64]) {
        // SAFETY: as in `unpack`.
        unsafe { (self.product)(x, y, out) }
    }

    /// Adds each value to the sum of its group, wrapping around; those of other groups than 0 to 7 are left out. `few` says that there are no
    /// groups beyond the third.
    pub fn sums(&self, values: &[i64], groups: &[u32], few: bool, sums: &mut [i64; 8]) {
        if few {
            let sums = sums.first_chunk_mut::<4>().expect("half of eight");
            // SAFETY: as in `unpack`.
            unsafe { (self.sums_of_4)(values, groups, sums) }
        } else {
            // SAFETY: as in `unpack`.
            unsafe { (self.sums_of_8)(values, groups, sums) }
        }
    }

    /// How many values differ from the one before.
    pub fn changes(&self, values: &[i64]) -> usize {
        // SAFETY: as in `unpack`.
        unsafe { (self.changes)(values) }
    }
}

/// Asks the processor to fetch packed words that will be read soon, into its second-level cache, of which it takes more at a time than
/// of the first: its own foresight does not reach over the work on a vector.
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

#[cfg(target_arch = "x86_64")]
fn has(isa: Isa) -> bool {
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
fn has(isa: Isa) -> bool {
    isa == Isa::Baseline
}

#[cfg(test)]
mod tests;
