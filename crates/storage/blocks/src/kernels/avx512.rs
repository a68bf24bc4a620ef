//! Range comparisons for AVX-512, whose comparisons produce bit masks; compiled loops would produce bytes first.

use std::arch::x86_64::{
    __m512i, _mm512_cmple_epu8_mask, _mm512_cmple_epu16_mask, _mm512_cmple_epu32_mask, _mm512_cmple_epu64_mask,
    _mm512_loadu_si512, _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_sub_epi8,
    _mm512_sub_epi16, _mm512_sub_epi32, _mm512_sub_epi64,
};

use crate::{Mask, VECTOR_ROWS};

macro_rules! between {
    ($lane:ident, $signed:ident, $lanes:literal, $broadcast:ident, $subtract:ident, $compare:ident) => {
        /// Returns the mask of the lanes in `low..=low + span`.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw")]
        pub(super) fn $lane(values: &[$lane; VECTOR_ROWS], low: $lane, span: $lane) -> Mask {
            let (low, span) = ($broadcast(low as $signed), $broadcast(span as $signed));
            let mut bytes = [0; VECTOR_ROWS / 8];
            for (bits, values) in bytes.as_chunks_mut().0.iter_mut().zip(values.as_chunks::<$lanes>().0) {
                // SAFETY: the lanes have 64 bytes, and the load needs no alignment.
                let vector = unsafe { _mm512_loadu_si512(values.as_ptr().cast::<__m512i>()) };
                *bits = $compare($subtract(vector, low), span).to_le_bytes();
            }
            let words: &[[u8; 8]] = bytes.as_chunks().0;
            std::array::from_fn(|word| u64::from_le_bytes(words[word]))
        }
    };
}

between!(u8, i8, 64, _mm512_set1_epi8, _mm512_sub_epi8, _mm512_cmple_epu8_mask);
between!(u16, i16, 32, _mm512_set1_epi16, _mm512_sub_epi16, _mm512_cmple_epu16_mask);
between!(u32, i32, 16, _mm512_set1_epi32, _mm512_sub_epi32, _mm512_cmple_epu32_mask);
between!(u64, i64, 8, _mm512_set1_epi64, _mm512_sub_epi64, _mm512_cmple_epu64_mask);
