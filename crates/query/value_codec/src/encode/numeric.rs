//! Encodes `numeric` in PostgreSQL's binary form: base-10,000 digits aligned to the decimal point.

use bytes::{BufMut, BytesMut};

const NEGATIVE: u16 = 0x4000;
const POSITIVE: u16 = 0;
const BASE: u128 = 10_000;
/// Decimal digits in one base-10,000 digit.
const GROUP: u8 = 4;

/// Appends `value` · 10^-`scale`: digit count, weight of the first digit, sign, display scale, then the digits.
pub(super) fn write_numeric(value: i128, scale: u8, out: &mut BytesMut) {
    let mut rest = value.unsigned_abs();
    // Least significant first; 39 decimal digits and a split at the point make at most 11 groups.
    let mut digits = [0u16; 12];
    let mut count = 0;
    let mut push = |digit: u128| {
        digits[count] = u16::try_from(digit).expect("a remainder of 10,000 is below it");
        count += 1;
    };
    // Groups are aligned to the decimal point, so the last one may need zeros on its right.
    let odd = scale % GROUP;
    if odd != 0 {
        let part = 10u128.pow(u32::from(odd));
        push(rest % part * 10u128.pow(u32::from(GROUP - odd)));
        rest /= part;
    }
    while rest > 0 {
        push(rest % BASE);
        rest /= BASE;
    }
    let weight = i16::try_from(count).expect("at most 12 groups") - i16::from(scale.div_ceil(GROUP)) - 1;
    let digits = &digits[..count];
    let leading = digits.iter().rev().take_while(|digit| **digit == 0).count();
    let digits = &digits[..count - leading];
    let trailing = digits.iter().take_while(|digit| **digit == 0).count();
    let digits = &digits[trailing..];
    let weight = if digits.is_empty() { 0 } else { weight - i16::try_from(leading).expect("at most 12 groups") };
    out.put_u16(u16::try_from(digits.len()).expect("at most 12 groups"));
    out.put_i16(weight);
    out.put_u16(if value < 0 { NEGATIVE } else { POSITIVE });
    out.put_u16(u16::from(scale));
    for digit in digits.iter().rev() {
        out.put_u16(*digit);
    }
}
