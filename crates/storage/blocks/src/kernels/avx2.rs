//! Range comparison of 64-bit lanes for AVX2, which only has signed comparisons.

use std::arch::x86_64::{
    __m256i, _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
    _mm256_sub_epi64,
};

use crate::{Mask, VECTOR_ROWS};

/// Returns the mask of the lanes in `low..=low + span`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn u64(values: &[u64; VECTOR_ROWS], low: u64, span: u64) -> Mask {
    // After subtracting 2^63, signed order is unsigned order.
    let low = _mm256_set1_epi64x((low ^ 1 << 63) as i64);
    let span = _mm256_set1_epi64x((span ^ 1 << 63) as i64);
    let mut mask = Mask::default();
    for (word, values) in mask.iter_mut().zip(values.as_chunks::<64>().0) {
        let mut beyond = 0;
        for (part, values) in values.as_chunks::<4>().0.iter().enumerate() {
            // SAFETY: the lanes have 32 bytes, and the load needs no alignment.
            let vector = unsafe { _mm256_loadu_si256(values.as_ptr().cast::<__m256i>()) };
            let is_beyond = _mm256_cmpgt_epi64(_mm256_sub_epi64(vector, low), span);
            beyond |= (_mm256_movemask_pd(_mm256_castsi256_pd(is_beyond)) as u64) << (part * 4);
        }
        *word = !beyond;
    }
    mask
}
