//! Numbers of as many bytes as they need.

/// A number in groups of seven bits, the lowest first (LEB128), and what is behind it; none where it does not end, or is longer than
/// 64 bits.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

/// A number with a sign, which is its lowest bit.
pub(super) fn zigzag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = varint(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), rest))
}
