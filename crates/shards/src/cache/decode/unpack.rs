//! Bit-packed numbers, the least significant bit first, as 64-bit lanes.

/// So many are unpacked by one pass of a loop that knows its width.
const STRIDE: usize = 32;
/// A lane is cut out of so many bytes from the one that it begins in.
const READ_BYTES: usize = 16;

/// Unpacks numbers of `width` bits, 64 at most; what `bytes` lacks is zeros.
pub(super) fn unpack(bytes: &[u8], width: u8, lanes: &mut [i64]) {
    macro_rules! of_widths {
        ($($width:literal)*) => {
            match width {
                0 => lanes.fill(0),
                $($width => unpack_of::<$width>(bytes, lanes),)*
                _ => unreachable!("whoever reads a width looks at it"),
            }
        };
    }
    of_widths!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
        33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64);
}

fn unpack_of<const WIDTH: usize>(bytes: &[u8], lanes: &mut [i64]) {
    let packed_bytes = STRIDE * WIDTH / 8;
    let mut rest = bytes;
    let (strides, last) = lanes.as_chunks_mut::<STRIDE>();
    for lanes in strides {
        if rest.len() < packed_bytes + READ_BYTES {
            *lanes = unpack_padded::<WIDTH>(rest);
        } else {
            unpack_stride::<WIDTH>(rest, lanes);
        }
        rest = rest.get(packed_bytes..).unwrap_or_default();
    }
    if !last.is_empty() {
        let count = last.len();
        last.copy_from_slice(&unpack_padded::<WIDTH>(rest)[..count]);
    }
}

/// Where fewer bytes are left than a stride reads.
fn unpack_padded<const WIDTH: usize>(bytes: &[u8]) -> [i64; STRIDE] {
    let mut padded = [0; STRIDE * 8 + READ_BYTES];
    let count = bytes.len().min(STRIDE * WIDTH / 8);
    padded[..count].copy_from_slice(&bytes[..count]);
    let mut lanes = [0; STRIDE];
    unpack_stride::<WIDTH>(&padded, &mut lanes);
    lanes
}

#[inline]
fn unpack_stride<const WIDTH: usize>(bytes: &[u8], lanes: &mut [i64; STRIDE]) {
    let bytes = &bytes[..STRIDE * WIDTH / 8 + READ_BYTES];
    for (place, lane) in lanes.iter_mut().enumerate() {
        let (byte, shift) = (place * WIDTH / 8, place * WIDTH % 8);
        // Of 57 bits and more not all may be within eight bytes of where they begin.
        let word = if WIDTH <= 57 {
            u64::from_le_bytes(bytes[byte..byte + 8].try_into().expect("eight bytes")) >> shift
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "the bits that are wanted are the lowest")]
            let word = (u128::from_le_bytes(bytes[byte..byte + 16].try_into().expect("sixteen bytes")) >> shift) as u64;
            word
        };
        *lane = (word & (u64::MAX >> (64 - WIDTH))).cast_signed();
    }
}
