//! Variable-length integers.

/// Reads an unsigned LEB128 number; returns it with the remaining bytes, or `None` if it does not end or exceeds 64
/// bits.
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

/// Reads a zigzag-encoded signed number.
pub(super) fn zigzag(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (value, rest) = varint(bytes)?;
    Some(((value >> 1).cast_signed() ^ -(value & 1).cast_signed(), rest))
}
