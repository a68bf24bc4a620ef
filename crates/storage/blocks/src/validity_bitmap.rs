//! Validity bitmaps of input columns: one bit per row, starting at any bit of a byte slice.

/// A borrowed validity bitmap; a set bit is a row that is not NULL.
#[derive(Debug, Clone, Copy)]
pub struct ValidityBitmap<'a> {
    bytes: &'a [u8],
    bit_offset: usize,
}

impl<'a> ValidityBitmap<'a> {
    /// Creates a bitmap that starts at bit `bit_offset` of `bytes`, least significant bit first.
    pub fn new(bytes: &'a [u8], bit_offset: usize) -> Self {
        Self { bytes, bit_offset }
    }

    /// Whether the bitmap has at least `rows` bits.
    pub(crate) fn has_bits_for(self, rows: usize) -> bool {
        self.bit_offset.checked_add(rows).is_some_and(|bits| bits.div_ceil(8) <= self.bytes.len())
    }

    /// Whether a row is not NULL.
    pub fn is_valid(self, row: usize) -> bool {
        let bit = self.bit_offset + row;
        self.bytes[bit / 8] >> (bit % 8) & 1 == 1
    }

    /// Returns the bits of `rows` rows, at most 1,024, from row `start` on.
    pub(crate) fn mask(self, start: usize, rows: usize) -> crate::Mask {
        let mut mask = crate::Mask::default();
        for (word, bits) in mask.iter_mut().enumerate() {
            let first = word * 64;
            let bit = self.bit_offset + start + first;
            if first < rows {
                *bits = self.word_at(bit) & low_bits(rows - first);
            }
        }
        mask
    }

    /// Returns the 64 bits from `bit` on, with zeros beyond the end.
    fn word_at(self, bit: usize) -> u64 {
        let tail = &self.bytes[bit / 8..];
        let mut wide = [0; 16];
        let taken = tail.len().min(9);
        wide[..taken].copy_from_slice(&tail[..taken]);
        (u128::from_le_bytes(wide) >> (bit % 8)) as u64
    }
}

/// Returns a word with the lowest `count` bits set.
fn low_bits(count: usize) -> u64 {
    if count < 64 { (1 << count) - 1 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_holds_the_bits_from_any_offset() {
        let bytes: Vec<u8> = (0..200u32).map(|byte| (byte * 73 + 5) as u8).collect();
        for offset in [0, 1, 7, 8, 13] {
            let bitmap = ValidityBitmap::new(&bytes, offset);
            for (start, rows) in [(0, 1024), (3, 1), (64, 100), (500, 64), (0, 0)] {
                let mask = bitmap.mask(start, rows);
                for row in 0..1024 {
                    let set = mask[row / 64] >> (row % 64) & 1 == 1;
                    assert_eq!(
                        set,
                        row < rows && bitmap.is_valid(start + row),
                        "offset {offset}, start {start}, row {row}"
                    );
                }
            }
        }
    }
}
