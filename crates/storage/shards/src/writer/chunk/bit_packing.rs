//! Bit-packs numbers, least significant bit first.

/// Number of values packed by one pass of a loop with constant bit width; a multiple of 8, so a pass ends at a byte.
pub(super) const VALUES_PER_PASS: usize = 32;
/// Largest number of words of a pass.
const WORDS_PER_PASS_MAX: usize = VALUES_PER_PASS * 64 / 64;

/// Appends numbers of `width` bits, 64 at most, in groups of eight; the last group is padded with zeros.
pub(super) fn pack(values: &[u64], width: u8, bytes: &mut Vec<u8>) {
    let (strides, rest) = values.as_chunks::<VALUES_PER_PASS>();
    bytes.reserve(values.len().next_multiple_of(8) * usize::from(width) / 8);
    strides.iter().for_each(|values| pack_stride(values, width, VALUES_PER_PASS, bytes));
    if !rest.is_empty() {
        let mut padded = [0; VALUES_PER_PASS];
        padded[..rest.len()].copy_from_slice(rest);
        pack_stride(&padded, width, rest.len().next_multiple_of(8), bytes);
    }
}

/// Packs the first `count` values of a stride.
pub(super) fn pack_stride(values: &[u64; VALUES_PER_PASS], width: u8, count: usize, bytes: &mut Vec<u8>) {
    macro_rules! of_widths {
        ($($width:literal)*) => {
            match width {
                0 => return,
                $($width => pack_words::<$width>(values),)*
                _ => unreachable!("bit widths are at most 64"),
            }
        };
    }
    let words = of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
    let mut left = count * usize::from(width) / 8;
    for word in words {
        let taken = left.min(8);
        bytes.extend_from_slice(&word.to_le_bytes()[..taken]);
        left -= taken;
        if left == 0 {
            break;
        }
    }
}

#[inline]
fn pack_words<const WIDTH: usize>(values: &[u64; VALUES_PER_PASS]) -> [u64; WORDS_PER_PASS_MAX] {
    let mut words = [0; WORDS_PER_PASS_MAX];
    for (place, value) in values.iter().enumerate() {
        let (word, shift) = (place * WIDTH / 64, place * WIDTH % 64);
        words[word] |= value << shift;
        if 64 < shift + WIDTH {
            words[word + 1] |= value >> (64 - shift);
        }
    }
    words
}

/// Returns the number of bits that a number takes.
pub(super) fn bit_width(number: u64) -> u8 {
    u8::try_from(u64::BITS - number.leading_zeros()).expect("64 at most")
}

/// Appends an unsigned LEB128 number.
pub(super) fn append_varint(mut number: u64, bytes: &mut Vec<u8>) {
    while 0x7f < number {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
