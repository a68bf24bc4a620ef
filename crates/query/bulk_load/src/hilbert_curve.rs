//! Positions on a Hilbert curve: points that are close to each other on it are close in every dimension.

/// Computes the position of a point on the Hilbert curve that fills the cube of coordinates below 2^`bits`.
///
/// Overwrites the coordinates, which together must not have more than 64 bits.
///
/// J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).
pub(super) fn curve_position(coordinates: &mut [u32], bits: u32) -> u64 {
    let top = 1_u32 << (bits - 1);
    let mut bit = top;
    while 1 < bit {
        let below = bit - 1;
        for index in 0..coordinates.len() {
            if coordinates[index] & bit != 0 {
                coordinates[0] ^= below;
            } else {
                let swapped = (coordinates[0] ^ coordinates[index]) & below;
                coordinates[0] ^= swapped;
                coordinates[index] ^= swapped;
            }
        }
        bit >>= 1;
    }
    for index in 1..coordinates.len() {
        coordinates[index] ^= coordinates[index - 1];
    }
    let last = coordinates.last().copied().unwrap_or(0);
    let mut flipped = 0;
    bit = top;
    while 1 < bit {
        if last & bit != 0 {
            flipped ^= bit - 1;
        }
        bit >>= 1;
    }
    // The position interleaves the coordinates' bits, highest first.
    let mut place = 0;
    for bit in (0..bits).rev() {
        for coordinate in coordinates.iter() {
            place = (place << 1) | u64::from(((coordinate ^ flipped) >> bit) & 1);
        }
    }
    place
}
