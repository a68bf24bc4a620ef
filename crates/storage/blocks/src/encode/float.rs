//! Encoding of floats by their keys, or by decimal digits (ALP) if they have few decimals.

use bytes::Bytes;

use crate::encode::block_writer::{PackingInput, write_block, write_decimals};
use crate::encode::choose_encoding::{EncodingPlan, choose_encoding};
use crate::encode::column_keys::{Keys, null_rows};
use crate::encode::key_statistics::KeyStatistics;
use crate::float_encoding::{DecimalEncoding, EXPONENT_MAX, f32_to_key, f64_to_key};
use crate::kernels::Kernels;
use crate::row_set::positions;
use crate::{Mask, VECTOR_ROWS, ValidityBitmap, ValueKind};

/// Number of values in the sample on which exponents are tried.
const SAMPLE_ROWS: usize = 32;
/// At most one in this many numbers may be an exception, which its digits do not restore exactly.
const ROWS_PER_EXCEPTION_MIN: usize = 16;
/// Minimum number of bits per value that digits must save: they are read a little more slowly than keys.
const BITS_SAVED_MIN: u8 = 6;

/// DecimalExponents of ten, up and down, of a decimal encoding.
type DecimalExponents = (u8, u8);

pub(super) fn encode_f64(values: &[f64], validity: Option<ValidityBitmap<'_>>) -> Bytes {
    let keys: Vec<i64> = values.iter().map(|value| f64_to_key(*value)).collect();
    encode(ValueKind::Float64, &Keys::new(&keys, validity), true)
}

pub(super) fn encode_f32(values: &[f32], validity: Option<ValidityBitmap<'_>>) -> Bytes {
    let keys: Vec<i64> = values.iter().map(|value| f32_to_key(*value)).collect();
    encode(ValueKind::Float32, &Keys::new(&keys, validity), true)
}

/// Encodes a block of floats, given by their keys.
pub(super) fn encode(kind: ValueKind, keys: &Keys<'_>, may_be_runs: bool) -> Bytes {
    let statistics = KeyStatistics::from_keys(keys);
    let mut plan = choose_encoding(&statistics);
    if plan == EncodingPlan::Runs && !may_be_runs {
        plan = statistics.packed_plan().unwrap_or(EncodingPlan::Plain);
    }
    let width = match plan {
        EncodingPlan::Constant | EncodingPlan::Runs => return write_block(kind, 0, keys, &statistics, plan),
        EncodingPlan::Packed { width } => width,
        EncodingPlan::Plain => u8::MAX,
    };
    let decimal = choose_exponents(kind, keys).and_then(|exponents| DecimalDigits::try_new(kind, keys, exponents));
    match decimal.as_ref().and_then(|digits| Some((digits, digits.packing_input(keys, &statistics)?))) {
        Some((digits, packing)) if packing.width + BITS_SAVED_MIN <= width => {
            write_decimals(kind, keys, &statistics, &packing, digits.exponents)
        }
        _ => write_block(kind, 0, keys, &statistics, plan),
    }
}

/// Returns the exponents that give a sample the fewest bits, including exceptions.
fn choose_exponents(kind: ValueKind, keys: &Keys<'_>) -> Option<DecimalExponents> {
    let step = (keys.rows() / SAMPLE_ROWS).max(1);
    let sample: Vec<i64> = (0..keys.rows())
        .step_by(step)
        .filter(|row| keys.is_valid(*row))
        .take(SAMPLE_ROWS)
        .map(|row| keys.values()[row])
        .collect();
    let candidates = (0..=EXPONENT_MAX).flat_map(|down| (0..=down).map(move |up| (up, down)));
    let cost = |exponents: &DecimalExponents| {
        let decimals = DecimalEncoding::new(*exponents);
        let (mut min, mut max, mut exceptions) = (i64::MAX, i64::MIN, 0);
        for key in &sample {
            let (digits, is_exact) =
                if kind == ValueKind::Float32 { decimals.encode_f32(*key) } else { decimals.encode_f64(*key) };
            if is_exact {
                (min, max) = (min.min(digits), max.max(digits));
            } else {
                exceptions += 1;
            }
            if sample.len() < exceptions * 4 {
                return None;
            }
        }
        let bits = if min <= max { 64 - (max.wrapping_sub(min) as u64).leading_zeros() as usize } else { 0 };
        Some((bits + 1) * sample.len() + exceptions * 80)
    };
    // Of equal costs the first wins, which has the smallest exponents.
    candidates
        .filter_map(|exponents| Some((cost(&exponents)?, exponents)))
        .min_by_key(|(cost, _)| *cost)
        .map(|(_, best)| best)
}

/// Decimal digits of a block's numbers.
struct DecimalDigits {
    exponents: DecimalExponents,
    digits: Vec<i64>,
    /// Masks of the exceptions, by vector.
    exceptions: Vec<Mask>,
}

impl DecimalDigits {
    /// Computes the digits; returns `None` if there are too many exceptions. Exceptions get digits of another row of
    /// their vector.
    fn try_new(kind: ValueKind, keys: &Keys<'_>, exponents: DecimalExponents) -> Option<Self> {
        let decimals = DecimalEncoding::new(exponents);
        let mut all = Vec::with_capacity(keys.rows());
        let mut exceptions = Vec::new();
        let mut count = 0;
        let mut digits = [0; VECTOR_ROWS];
        for (values, valid) in keys.vectors() {
            let mut padded = [0; VECTOR_ROWS];
            padded[..values.len()].copy_from_slice(values);
            let exact = Kernels::get().encode_decimals(&padded, decimals, kind == ValueKind::Float32, &mut digits);
            let first = positions(&exact).next().filter(|row| *row < values.len()).map_or(0, |row| digits[row]);
            for row in null_rows(&exact, values.len()) {
                digits[row] = first;
            }
            let mask: Mask = std::array::from_fn(|word| valid[word] & !exact[word]);
            all.extend_from_slice(&digits[..values.len()]);
            count += mask.iter().map(|word| word.count_ones() as usize).sum::<usize>();
            exceptions.push(mask);
            if keys.rows() + VECTOR_ROWS < count * ROWS_PER_EXCEPTION_MIN {
                return None;
            }
        }
        Some(Self { exponents, digits: all, exceptions })
    }

    /// Prepares the digits for packing; `None` if they cannot be packed.
    fn packing_input<'a>(&'a self, keys: &'a Keys<'a>, of_keys: &KeyStatistics) -> Option<PackingInput<'a>> {
        let masks = keys.validity().map(<[Mask]>::to_vec);
        let numbers =
            masks.map_or_else(|| Keys::new(&self.digits, None), |masks| Keys::with_masks(&self.digits, masks));
        let statistics = KeyStatistics::from_keys(&numbers);
        let Some(EncodingPlan::Packed { width }) = statistics.packed_plan() else { return None };
        let bases = statistics.vector_headers.iter().map(|entry| (entry.base, entry.max)).collect();
        debug_assert_eq!(
            statistics.vector_headers.len(),
            of_keys.vector_headers.len(),
            "keys and digits have the same vectors"
        );
        Some(PackingInput { numbers, bases, width, patch_keys: keys.values(), exceptions: Some(&self.exceptions) })
    }
}
