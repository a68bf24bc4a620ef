//! Unpacks bit-packed numbers, least significant bit first, into lanes of 32 or 64 bits.

/// Number of lanes unpacked by one pass of a loop with constant bit width.
const LANES_PER_PASS: usize = 32;
/// Number of bytes read for a lane, from the one in which it starts.
const LANE_READ_BYTES: usize = 16;

/// Integer type that numbers are unpacked into.
pub(super) trait Lane: Copy + Default {
    /// Returns the lowest bits of a number.
    fn from_bits(number: u64) -> Self;
}

impl Lane for i64 {
    #[inline]
    fn from_bits(number: u64) -> Self {
        number.cast_signed()
    }
}

impl Lane for u32 {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "callers with 32-bit lanes unpack at most 32 bits")]
    fn from_bits(number: u64) -> Self {
        number as Self
    }
}

/// Unpacks numbers of `width` bits, 64 at most; bits beyond the end of `bytes` read as zero.
pub(super) fn unpack<T: Lane>(bytes: &[u8], width: u8, lanes: &mut [T]) {
    macro_rules! of_widths {
        ($($width:literal)*) => {
            match width {
                0 => lanes.fill(T::default()),
                $($width => unpack_width::<$width, T>(bytes, lanes),)*
                _ => unreachable!("callers check that a bit width is at most 64"),
            }
        };
    }
    of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
}

fn unpack_width<const WIDTH: usize, T: Lane>(bytes: &[u8], lanes: &mut [T]) {
    let packed_bytes = LANES_PER_PASS * WIDTH / 8;
    let mut rest = bytes;
    let (strides, last) = lanes.as_chunks_mut::<LANES_PER_PASS>();
    for lanes in strides {
        if rest.len() < packed_bytes + LANE_READ_BYTES {
            *lanes = unpack_padded::<WIDTH, T>(rest);
        } else {
            unpack_stride::<WIDTH, T>(rest, lanes);
        }
        rest = rest.get(packed_bytes..).unwrap_or_default();
    }
    if !last.is_empty() {
        let count = last.len();
        last.copy_from_slice(&unpack_padded::<WIDTH, T>(rest)[..count]);
    }
}

/// Unpacks a stride at the end of the input, padded with zeros.
fn unpack_padded<const WIDTH: usize, T: Lane>(bytes: &[u8]) -> [T; LANES_PER_PASS] {
    let mut padded = [0; LANES_PER_PASS * 8 + LANE_READ_BYTES];
    let count = bytes.len().min(LANES_PER_PASS * WIDTH / 8);
    padded[..count].copy_from_slice(&bytes[..count]);
    let mut lanes = [T::default(); LANES_PER_PASS];
    unpack_stride::<WIDTH, T>(&padded, &mut lanes);
    lanes
}

#[inline]
fn unpack_stride<const WIDTH: usize, T: Lane>(bytes: &[u8], lanes: &mut [T; LANES_PER_PASS]) {
    let bytes = &bytes[..LANES_PER_PASS * WIDTH / 8 + LANE_READ_BYTES];
    for (place, lane) in lanes.iter_mut().enumerate() {
        let (byte, shift) = (place * WIDTH / 8, place * WIDTH % 8);
        // A lane of more than 57 bits may extend beyond the eight bytes in which it starts.
        let word = if WIDTH <= 57 {
            u64::from_le_bytes(bytes[byte..byte + 8].try_into().expect("eight bytes")) >> shift
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "the bits that are wanted are the lowest")]
            let word = (u128::from_le_bytes(bytes[byte..byte + 16].try_into().expect("sixteen bytes")) >> shift) as u64;
            word
        };
        *lane = T::from_bits(word & (u64::MAX >> (64 - WIDTH)));
    }
}
