//! Order-preserving integer keys of floats, and decimal encoding of floats (ALP).
//!
//! Keys have PostgreSQL's order: NaN is equal to itself and greater than all other numbers. All NaNs have one key. The
//! key of -0 is one below that of 0, so that -0 can be restored; comparisons treat both as zero.

/// Returns the key of a double.
pub(crate) fn f64_to_key(value: f64) -> i64 {
    let bits = if value.is_nan() { f64::NAN.to_bits() & (u64::MAX >> 1) } else { value.to_bits() };
    flip64(bits as i64)
}

/// Returns the double of a key.
pub(crate) fn key_to_f64(key: i64) -> f64 {
    f64::from_bits(flip64(key) as u64)
}

/// Returns the key of a single, which has 32 bits.
pub(crate) fn f32_to_key(value: f32) -> i64 {
    let bits = if value.is_nan() { f32::NAN.to_bits() & (u32::MAX >> 1) } else { value.to_bits() };
    flip32(bits as i32).into()
}

/// Returns the single of a key.
pub(crate) fn key_to_f32(key: i64) -> f32 {
    f32::from_bits(flip32(key as i32) as u32)
}

/// Flips the lower bits of negative numbers, whose bits sort in reverse order.
fn flip64(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

fn flip32(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// Decimal encoding of floats with few decimals (ALP: Afroozeh, Kuffó and Boncz, SIGMOD 2023).
///
/// A float is represented by an integer, its digits: the float is `digits * 10^up * 10^-down`, computed in doubles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DecimalEncoding {
    decode_multiplier: f64,
    decode_inverse: f64,
    encode_multiplier: f64,
    encode_inverse: f64,
}

/// Maximum exponent of ten.
pub(crate) const EXPONENT_MAX: u8 = 18;
const POWERS_OF_TEN: [f64; EXPONENT_MAX as usize + 1] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const INVERSE_POWERS_OF_TEN: [f64; EXPONENT_MAX as usize + 1] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15, 1e-16, 1e-17,
    1e-18,
];
/// Constant whose addition rounds a double to an integer.
const ROUNDING_ADDEND: f64 = (1_u64 << 52) as f64 + (1_u64 << 51) as f64;
/// Bound of the absolute values for which this rounding is exact.
const DIGITS_MAX: f64 = (1_u64 << 51) as f64;

impl DecimalEncoding {
    /// Creates the encoding with the exponents `up` and `down`.
    ///
    /// # Panics
    /// If an exponent is greater than 18.
    #[must_use]
    pub fn new((up, down): (u8, u8)) -> Self {
        let (up, down) = (usize::from(up), usize::from(down));
        Self {
            decode_multiplier: POWERS_OF_TEN[up],
            decode_inverse: INVERSE_POWERS_OF_TEN[down],
            encode_multiplier: POWERS_OF_TEN[down],
            encode_inverse: INVERSE_POWERS_OF_TEN[up],
        }
    }

    /// Returns the digits of the double with `key`, and whether they restore it exactly.
    #[inline(always)]
    pub(crate) fn encode_f64(self, key: i64) -> (i64, bool) {
        let value = key_to_f64(key);
        let (digits, back) = self.nearest_digits(value);
        (digits, back == value && back.is_sign_negative() == value.is_sign_negative())
    }

    /// Returns the digits of the single with `key`, and whether they restore it exactly.
    #[inline(always)]
    pub(crate) fn encode_f32(self, key: i64) -> (i64, bool) {
        let value = key_to_f32(key);
        let (digits, back) = self.nearest_digits(value.into());
        (digits, back as f32 == value && back.is_sign_negative() == value.is_sign_negative())
    }

    /// Returns the nearest digits and the number that they represent.
    #[inline(always)]
    fn nearest_digits(self, value: f64) -> (i64, f64) {
        let scaled = value * self.encode_multiplier * self.encode_inverse;
        let shifted = scaled + ROUNDING_ADDEND;
        let digits = (shifted.to_bits() as i64).wrapping_sub(ROUNDING_ADDEND.to_bits() as i64);
        // Beyond this bound the low bits are not the rounded integer.
        let whole = if scaled.abs() < DIGITS_MAX { shifted - ROUNDING_ADDEND } else { f64::NAN };
        (digits, whole * self.decode_multiplier * self.decode_inverse)
    }

    /// Returns the number that digits represent; it is monotonic in the digits.
    #[inline(always)]
    pub(crate) fn decode(self, digits: i64) -> f64 {
        digits as f64 * self.decode_multiplier * self.decode_inverse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_as_numbers_do_and_come_back() {
        let ascending =
            [f64::NEG_INFINITY, f64::MIN, -1.5, -f64::MIN_POSITIVE, -5e-324, -0.0, 0.0, 5e-324, 1.0, f64::INFINITY];
        assert!(ascending.is_sorted_by(|one, other| f64_to_key(*one) < f64_to_key(*other)));
        assert!(ascending.iter().all(|value| key_to_f64(f64_to_key(*value)).to_bits() == value.to_bits()));
        assert_eq!(f64_to_key(-f64::NAN), f64_to_key(f64::NAN));
        assert!(f64_to_key(f64::INFINITY) < f64_to_key(f64::NAN) && key_to_f64(f64_to_key(f64::NAN)).is_nan());
        let ascending = [f32::NEG_INFINITY, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.0, f32::MAX, f32::INFINITY];
        assert!(ascending.is_sorted_by(|one, other| f32_to_key(*one) < f32_to_key(*other)));
        assert!(ascending.iter().all(|value| key_to_f32(f32_to_key(*value)).to_bits() == value.to_bits()));
        assert!(f32_to_key(f32::INFINITY) < f32_to_key(-f32::NAN) && key_to_f32(f32_to_key(f32::NAN)).is_nan());
    }

    #[test]
    fn digits_stand_for_numbers_in_order() {
        for exponents in [(0, 0), (0, 2), (12, 14), (0, 18), (18, 0)] {
            let decimals = DecimalEncoding::new(exponents);
            let far = [i64::MIN, -(1 << 60), -7, -1, 0, 1, 2, 99, 1 << 52, (1 << 53) + 1, i64::MAX];
            assert!(far.is_sorted_by_key(|digits| f64_to_key(decimals.decode(*digits))));
        }
        let cents = DecimalEncoding::new((0, 2));
        assert_eq!(
            (cents.encode_f64(f64_to_key(12.34)), cents.encode_f32(f32_to_key(-12.5))),
            ((1234, true), (-1250, true))
        );
        for value in [f64::NAN, f64::INFINITY, 1e300, 1e17, -0.0, 0.001] {
            assert!(!cents.encode_f64(f64_to_key(value)).1, "{value}");
        }
    }
}
