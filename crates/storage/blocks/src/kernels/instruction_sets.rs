//! Instances of the kernels for each instruction set.

use crate::float_encoding::DecimalEncoding;
use crate::kernels::lane_kernels::{self, Word};
use crate::kernels::{Isa, Kernels, LaneKernels, flags_to_mask, integer_arithmetic};
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
                min_max,
                count_changes,
                decode_decimals,
                encode_f64_decimals,
                encode_f32_decimals,
                linear_combination,
                scale_and_shift,
                product,
                add_to_4_sums,
                add_to_8_sums,
            };

            $(#[target_feature(enable = $features)])?
            fn linear_combination(x: &[i64], f: i64, y: &[i64], g: i64, out: &mut [i64]) {
                integer_arithmetic::linear_combination(x, f, y, g, out);
            }

            $(#[target_feature(enable = $features)])?
            fn scale_and_shift(x: &[i64], f: i64, c: i64, out: &mut [i64]) {
                integer_arithmetic::scale_and_shift(x, f, c, out);
            }

            $(#[target_feature(enable = $features)])?
            fn product(x: &[i64], y: &[i64], out: &mut [i64]) {
                integer_arithmetic::product(x, y, out);
            }

            $(#[target_feature(enable = $features)])?
            fn add_to_4_sums(values: &[i64], groups: &[u32], sums: &mut [i64; 4]) {
                integer_arithmetic::add_to_sums::<4>(values, groups, sums);
            }

            $(#[target_feature(enable = $features)])?
            fn add_to_8_sums(values: &[i64], groups: &[u32], sums: &mut [i64; 8]) {
                integer_arithmetic::add_to_sums::<8>(values, groups, sums);
            }

            variant!(lane $isa u8, 8, $bits $(, $features)?);
            variant!(lane $isa u16, 16, $bits $(, $features)?);
            variant!(lane $isa u32, 32, $bits $(, $features)?);
            variant!(lane $isa u64, 64, $bits $(, $features)?);

            $(#[target_feature(enable = $features)])?
            fn min_max(values: &[i64]) -> (i64, i64) {
                lane_kernels::min_max(values)
            }

            $(#[target_feature(enable = $features)])?
            fn count_changes(values: &[i64]) -> usize {
                lane_kernels::count_changes(values)
            }

            $(#[target_feature(enable = $features)])?
            fn decode_decimals(digits: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, numbers: &mut [f64; VECTOR_ROWS]) {
                lane_kernels::decode_decimals(digits, decimals, numbers);
            }

            $(#[target_feature(enable = $features)])?
            fn encode_f64_decimals(keys: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, digits: &mut [i64; VECTOR_ROWS]) -> Mask {
                lane_kernels::encode_decimals(keys, decimals, false, digits, |flags| $bits(flags))
            }

            $(#[target_feature(enable = $features)])?
            fn encode_f32_decimals(keys: &[i64; VECTOR_ROWS], decimals: DecimalEncoding, digits: &mut [i64; VECTOR_ROWS]) -> Mask {
                lane_kernels::encode_decimals(keys, decimals, true, digits, |flags| $bits(flags))
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
                lane_kernels::$lane::unpack::<WIDTH>(packed, values);
            }

            $(#[target_feature(enable = $features)])?
            fn pack(values: &[$lane; VECTOR_ROWS], width: usize, packed: &mut [Word]) {
                lane_kernels::$lane::pack(values, width, packed);
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
                lane_kernels::$lane::lookup(values, shift, table, |flags| $bits(flags))
            }

            $(#[target_feature(enable = $features)])?
            fn widen(values: &[$lane; VECTOR_ROWS], base: i64, wide: &mut [i64; VECTOR_ROWS]) {
                lane_kernels::$lane::widen(values, base, wide);
            }

            $(#[target_feature(enable = $features)])?
            fn narrow(wide: &[i64; VECTOR_ROWS], base: i64, values: &mut [$lane; VECTOR_ROWS]) {
                lane_kernels::$lane::narrow(wide, base, values);
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
        lane_kernels::$lane::between($values, $low, $span, |flags| $bits(flags))
    };
}

variant!(baseline, Baseline, flags_to_mask::baseline);
#[cfg(target_arch = "x86_64")]
variant!(avx2, Avx2, flags_to_mask::avx2, "avx2,bmi1,bmi2,lzcnt,popcnt");
#[cfg(target_arch = "x86_64")]
variant!(avx512, Avx512, flags_to_mask::avx512, "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl");

/// Kernels of all instruction sets of this architecture, the best last.
#[cfg(target_arch = "x86_64")]
pub(super) static ALL: [&Kernels; 3] = [&baseline::KERNELS, &avx2::KERNELS, &avx512::KERNELS];
#[cfg(not(target_arch = "x86_64"))]
pub(super) static ALL: [&Kernels; 1] = [&baseline::KERNELS];
