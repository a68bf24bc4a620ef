//! Loops over 64-bit integers. All wrap around: the caller has checked that nothing overflows.

/// Computes `out = x * f + y * g`, up to the shortest slice.
#[inline(always)]
pub(super) fn linear_combination(x: &[i64], f: i64, y: &[i64], g: i64, out: &mut [i64]) {
    for (out, (x, y)) in out.iter_mut().zip(x.iter().zip(y)) {
        *out = x.wrapping_mul(f).wrapping_add(y.wrapping_mul(g));
    }
}

/// Computes `out = x * f + c`.
#[inline(always)]
pub(super) fn scale_and_shift(x: &[i64], f: i64, c: i64, out: &mut [i64]) {
    if f == 1 {
        out.iter_mut().zip(x).for_each(|(out, x)| *out = x.wrapping_add(c));
    } else {
        out.iter_mut().zip(x).for_each(|(out, x)| *out = x.wrapping_mul(f).wrapping_add(c));
    }
}

/// Computes `out = x * y`.
#[inline(always)]
pub(super) fn product(x: &[i64], y: &[i64], out: &mut [i64]) {
    out.iter_mut().zip(x.iter().zip(y)).for_each(|(out, (x, y))| *out = x.wrapping_mul(*y));
}

/// Number of partial sums per group, which are independent of each other.
const LANES: usize = 8;

/// Adds each value to the sum of its group. Every value is tested against every group, which avoids branches and
/// dependencies through memory.
#[inline(always)]
pub(super) fn add_to_sums<const GROUPS: usize>(values: &[i64], groups: &[u32], sums: &mut [i64; GROUPS]) {
    let mut parts = [[0_i64; LANES]; GROUPS];
    let (value_chunks, value_rest) = values.as_chunks::<LANES>();
    let (group_chunks, group_rest) = groups.as_chunks::<LANES>();
    for (values, groups) in value_chunks.iter().zip(group_chunks) {
        for (group, parts) in parts.iter_mut().enumerate() {
            for lane in 0..LANES {
                let mask = -i64::from(groups[lane] == group as u32);
                parts[lane] = parts[lane].wrapping_add(values[lane] & mask);
            }
        }
    }
    for (group, (sum, parts)) in sums.iter_mut().zip(&parts).enumerate() {
        let whole = parts.iter().fold(*sum, |sum, part| sum.wrapping_add(*part));
        let rest = value_rest.iter().zip(group_rest).filter(|(_, of)| **of == group as u32);
        *sum = rest.fold(whole, |sum, (value, _)| sum.wrapping_add(*value));
    }
}
