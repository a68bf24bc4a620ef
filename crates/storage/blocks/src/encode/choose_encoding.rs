//! Choice of a block's encoding by its size and the cost of reading.

use crate::encode::key_statistics::KeyStatistics;
use crate::kernels::Word;

/// Minimum number of bits per offset that patches must save: patches are read one by one.
const BITS_SAVED_MIN: u8 = 2;
/// Size of a patch: its key and its row, in bytes.
const PATCH_BYTES: usize = 10;
/// At most one in this many keys may be a patch.
const ROWS_PER_PATCH_MIN: usize = 64;
/// Minimum average length of runs. Reading a run takes a hundredth of the time of reading a vector, so shorter runs
/// cost more time than their size saves.
const RUN_ROWS_MIN: usize = 6;
/// Size of the end of a run, in bytes.
const RUN_END_BYTES: usize = 2;

/// Chosen encoding with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EncodingPlan {
    Constant,
    Packed { width: u8 },
    Runs,
    Plain,
}

/// Chooses the smallest encoding that is fast to read.
pub(crate) fn choose_encoding(statistics: &KeyStatistics) -> EncodingPlan {
    let is_constant = match statistics.bounds {
        None => true,
        Some((min, max)) => min == max && statistics.null_count == 0,
    };
    if is_constant {
        return EncodingPlan::Constant;
    }
    let packed = statistics.packed_plan();
    let packed_bytes = match packed {
        Some(EncodingPlan::Packed { width }) => packed_bytes(statistics, width),
        _ => statistics.rows * 8,
    };
    let run_bits = usize::from(statistics.width.unwrap_or(u8::BITS as u8 * 8));
    let run_bytes = crate::BlockHeader::header_bytes_for(statistics.run_count)
        + statistics.run_count * (RUN_END_BYTES + run_bits.div_ceil(8));
    if statistics.run_count * RUN_ROWS_MIN <= statistics.rows && run_bytes * 2 <= packed_bytes {
        return EncodingPlan::Runs;
    }
    packed.unwrap_or(EncodingPlan::Plain)
}

impl KeyStatistics {
    /// Returns the packed encoding with the best width; `None` if the keys cannot be packed.
    pub(crate) fn packed_plan(&self) -> Option<EncodingPlan> {
        let full = self.width?;
        let narrow = (0..full.saturating_sub(BITS_SAVED_MIN - 1))
            .filter(|width| self.patch_count(*width).is_some_and(|patches| patches * ROWS_PER_PATCH_MIN <= self.rows))
            .min_by_key(|width| packed_bytes(self, *width));
        let width = narrow.filter(|width| packed_bytes(self, *width) < packed_bytes(self, full)).unwrap_or(full);
        Some(EncodingPlan::Packed { width })
    }

    /// Returns the number of keys that do not fit `width` bits; `None` if they were not counted.
    fn patch_count(&self, width: u8) -> Option<usize> {
        self.patch_counts.iter().find(|(counted, _)| *counted == width).map(|(_, patches)| *patches)
    }
}

/// Returns the size of packed offsets and patches, in bytes.
fn packed_bytes(statistics: &KeyStatistics, width: u8) -> usize {
    let patches = if Some(width) == statistics.width { Some(0) } else { statistics.patch_count(width) };
    statistics.vector_headers.len() * usize::from(width) * size_of::<Word>() + patches.unwrap_or(0) * PATCH_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValidityBitmap;
    use crate::encode::column_keys::Keys;

    fn plan(values: &[i64], validity: Option<&[u8]>) -> EncodingPlan {
        choose_encoding(&KeyStatistics::from_keys(&Keys::new(
            values,
            validity.map(|bytes| ValidityBitmap::new(bytes, 0)),
        )))
    }

    #[test]
    fn a_scheme_follows_from_the_values() {
        let rows = 65_536;
        let mixed = |row: i64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 40;
        assert_eq!(plan(&[], None), EncodingPlan::Constant);
        assert_eq!(plan(&vec![7; rows], None), EncodingPlan::Constant);
        assert_eq!(plan(&[7; 8], Some(&[0])), EncodingPlan::Constant);
        assert_eq!(plan(&[7; 8], Some(&[1])), EncodingPlan::Packed { width: 1 });
        assert_eq!(plan(&(0..rows as i64).collect::<Vec<_>>(), None), EncodingPlan::Packed { width: 10 });
        assert_eq!(plan(&(0..rows as i64).map(mixed).collect::<Vec<_>>(), None), EncodingPlan::Packed { width: 24 });
        assert_eq!(plan(&(0..rows as i64).map(|row| mixed(row / 100)).collect::<Vec<_>>(), None), EncodingPlan::Runs);
        assert_eq!(plan(&[i64::MIN, i64::MAX, 0], Some(&[3])), EncodingPlan::Plain);
        assert_eq!(plan(&[i64::MIN, i64::MAX, 0], None), EncodingPlan::Packed { width: 64 });
        let outliers = |row: i64| if row % 5000 == 77 { 1 << 40 } else { mixed(row) & 0xff };
        assert_eq!(plan(&(0..rows as i64).map(outliers).collect::<Vec<_>>(), None), EncodingPlan::Packed { width: 8 });
    }
}
