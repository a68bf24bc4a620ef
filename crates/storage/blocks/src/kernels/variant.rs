//! Instances of the kernels for each instruction set.

use crate::float::DecimalEncoding;
use crate::kernels::lane::{self, Word};
use crate::kernels::{Isa, Kernels, LaneKernels, bits, numbers};
use crate::{Mask, VECTOR_ROWS};

/// Compiles every loop for an instruction set, given by its target features. The loops are inlined into functions with
/// these features; as separate functions they would be compiled for the baseline.
macro_rules! variant {
    ($name:ident, $isa:ident, $bits:path $(, $features:literal)?) => {
        mod $name {
            use super::*;

            pub(super) static KERNELS: Kernels = Kernels {
                isa: Isa::$isa,
                u8: u8::KERNELS,
                u16: u16::KERNELS,
                u32: u32::KERNELS,
                u64: u64::KERNELS,
                bounds,
                changes,
                decimals,
                digits,
                digits_of_singles,
                linear,
                shift,
                product,
                sums_of_4,
                sums_of_8,
            };

            $(#[target_feature(enable = $features)])?
            fn linear(x: &[i64], f: i64, y: &[i64], g: i64, out: &mut [i64]) {
                numbers::linear(x, f, y, g, out);
            }

            $(#[target_feature(enable = $features)])?
            fn shift(x: &[i64], f: i64, c: i64, out: &mut [i64]) {
                numbers::shift(x, f, c, out);
            }

            $(#[target_feature(enable = $features)])?
            fn product(x: &[i64], y: &[i64], out: &mut [i64]) {
                numbers::product(x, y, out);
            }

            $(#[target_feature(enable = $features)])?
            fn sums_of_4(values: &[i64], groups: &[u32], sums: &mut [i64; 4]) {
                numbers::sums::<4>(values, groups, sums);
            }

            $(#[target_feature(enable = $features)])?
            fn sums_of_8(values: &[i64], groups: &[u32], sums: &mut [i64; 8]) {
                numbers::sums::<8>(values, groups, sums);
            }

            variant!(lane $isa u8, 8, $bits $(, $features)?);
            variant!(lane $isa u16, 16, $bits $(, $features)?);
            variant!(lane $isa u32, 32, $bits $(, $features)?);
            variant!(lane $isa u64, 64, $bits $(, $features)?);

            $(#[target_feature(enable = $features)])?
            fn bounds(values: &[i64]) -> (i64, i64) {
                lane::bounds(values)
            }

            $(#[target_feature(enable = $features)])?
            fn changes(values: &[i64]) -> usize {
                lane::changes(values)
            }

            $(#[target_feature(enable = $features)])?
            fn decimals(digits: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, numbers: &mut [f64; VECTOR_ROWS]) {
                lane::decimals(digits, decimals, numbers);
            }

            $(#[target_feature(enable = $features)])?
            fn digits(keys: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, digits: &mut [i64; VECTOR_ROWS]) -> Mask {
                lane::digits(keys, decimals, false, digits, |flags| $bits(flags))
            }

            $(#[target_feature(enable = $features)])?
            fn digits_of_singles(keys: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, digits: &mut [i64; VECTOR_ROWS]) -> Mask {
                lane::digits(keys, decimals, true, digits, |flags| $bits(flags))
            }
        }
    };
    (lane $isa:ident $lane:ident, $widths:literal, $bits:path $(, $features:literal)?) => {
        mod $lane {
            use super::*;

            seq_macro::seq!(WIDTH in 0..=$widths {
                pub(super) const KERNELS: LaneKernels<$lane> = LaneKernels {
                    unpack: &[#(unpack::<WIDTH>,)*],
                    pack,
                    between,
                    retain_between,
                    lookup,
                    widen,
                    narrow,
                };
            });

            $(#[target_feature(enable = $features)])?
            fn unpack<const WIDTH: usize>(packed: &[Word], values: &mut [$lane; VECTOR_ROWS]) {
                lane::$lane::unpack::<WIDTH>(packed, values);
            }

            $(#[target_feature(enable = $features)])?
            fn pack(values: &[$lane; VECTOR_ROWS], width: usize, packed: &mut [Word]) {
                lane::$lane::pack(values, width, packed);
            }

            $(#[target_feature(enable = $features)])?
            fn between(values: &[$lane; VECTOR_ROWS], low: $lane, span: $lane) -> Mask {
                variant!(between $isa $lane, values, low, span, $bits)
            }

            $(#[target_feature(enable = $features)])?
            fn retain_between(values: &[$lane; VECTOR_ROWS], low: $lane, span: $lane, mask: &mut Mask) {
                let between = variant!(between $isa $lane, values, low, span, $bits);
                for (word, bits) in mask.iter_mut().zip(between) {
                    *word &= bits;
                }
            }

            $(#[target_feature(enable = $features)])?
            fn lookup(values: &[$lane; VECTOR_ROWS], shift: u64, table: &[u8]) -> Mask {
                lane::$lane::lookup(values, shift, table, |flags| $bits(flags))
            }

            $(#[target_feature(enable = $features)])?
            fn widen(values: &[$lane; VECTOR_ROWS], base: i64, wide: &mut [i64; VECTOR_ROWS]) {
                lane::$lane::widen(values, base, wide);
            }

            $(#[target_feature(enable = $features)])?
            fn narrow(wide: &[i64; VECTOR_ROWS], base: i64, values: &mut [$lane; VECTOR_ROWS]) {
                lane::$lane::narrow(wide, base, values);
            }
        }
    };
    // Intrinsics where compiled loops are several times slower.
    (between Avx512 $lane:ident, $values:ident, $low:ident, $span:ident, $bits:path) => {
        crate::kernels::avx512::$lane($values, $low, $span)
    };
    (between Avx2 u64, $values:ident, $low:ident, $span:ident, $bits:path) => {
        crate::kernels::avx2::u64($values, $low, $span)
    };
    (between $isa:ident $lane:ident, $values:ident, $low:ident, $span:ident, $bits:path) => {
        lane::$lane::between($values, $low, $span, |flags| $bits(flags))
    };
}

variant!(baseline, Baseline, bits::baseline);
#[cfg(target_arch = "x86_64")]
variant!(avx2, Avx2, bits::avx2, "avx2,bmi1,bmi2,lzcnt,popcnt");
#[cfg(target_arch = "x86_64")]
variant!(avx512, Avx512, bits::avx512, "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl");

/// Kernels of all instruction sets of this architecture, the best last.
#[cfg(target_arch = "x86_64")]
pub(super) static ALL: [&Kernels; 3] = [&baseline::KERNELS, &avx2::KERNELS, &avx512::KERNELS];
#[cfg(not(target_arch = "x86_64"))]
pub(super) static ALL: [&Kernels; 1] = [&baseline::KERNELS];
