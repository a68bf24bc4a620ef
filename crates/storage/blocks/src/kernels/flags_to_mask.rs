//! Conversion of 64 flags, bytes of 0 or 255, to a 64-bit mask with the first flag in the lowest bit.

/// Converts the flags by multiplication, eight at a time, on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
pub(super) fn portable(flags: &[u8; 64]) -> u64 {
    let mut bits = 0;
    for (byte, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        let ones = u64::from_le_bytes(*flags) & 0x0101_0101_0101_0101;
        bits |= (ones.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (byte * 8);
    }
    bits
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::{avx2, avx512, baseline};

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable as baseline;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_movemask_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm512_loadu_si512, _mm512_movepi8_mask,
    };

    #[inline]
    pub(in super::super) fn baseline(flags: &[u8; 64]) -> u64 {
        let mut bits = 0;
        for (part, flags) in flags.as_chunks::<16>().0.iter().enumerate() {
            // SAFETY: x86-64 has SSE2; the chunk has 16 bytes, and the load needs no alignment.
            let mask = unsafe { _mm_movemask_epi8(_mm_loadu_si128(flags.as_ptr().cast::<__m128i>())) };
            bits |= u64::from(mask as u16) << (part * 16);
        }
        bits
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in super::super) fn avx2(flags: &[u8; 64]) -> u64 {
        let mut bits = 0;
        for (part, flags) in flags.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: the chunk has 32 bytes, and the load needs no alignment.
            let vector = unsafe { _mm256_loadu_si256(flags.as_ptr().cast::<__m256i>()) };
            bits |= u64::from(_mm256_movemask_epi8(vector) as u32) << (part * 32);
        }
        bits
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in super::super) fn avx512(flags: &[u8; 64]) -> u64 {
        // SAFETY: the array has 64 bytes, and the load needs no alignment.
        let vector = unsafe { _mm512_loadu_si512(flags.as_ptr().cast::<__m512i>()) };
        _mm512_movepi8_mask(vector)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn flags_become_bits_in_order() {
        for seed in [0, 1, 0x8000_0000_0000_0000, 0x9e37_79b9_7f4a_7c15, u64::MAX] {
            let flags = std::array::from_fn(|bit| if seed >> bit & 1 == 1 { u8::MAX } else { 0 });
            assert_eq!(super::portable(&flags), seed);
            assert_eq!(super::baseline(&flags), seed);
        }
    }
}
