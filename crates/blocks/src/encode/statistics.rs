//! What the choice of a scheme needs to know of a block's keys.

use crate::Entry;
use crate::encode::choose::Plan;
use crate::encode::keys::Keys;
use crate::kernels::Kernels;

/// How many keys need how many bits over their vector's base.
pub(crate) type Histogram = [usize; 65];
/// Of every so many keys one is looked at before all are.
const SAMPLED: usize = 16;

/// Counts over the keys of a block.
#[derive(Debug, Clone)]
pub(crate) struct Statistics {
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    /// The least and the greatest key, where there is one.
    pub(crate) bounds: Option<(i64, i64)>,
    /// Runs of equal keys, of which NULLs are some.
    pub(crate) runs: usize,
    /// Bits of the greatest distance of a key from its vector's base; none where 64 are too few.
    pub(crate) width: Option<u8>,
    /// How many keys need how many bits; made only where patches may pay.
    pub(crate) histogram: Option<Box<Histogram>>,
    /// For each vector its base, bounds and NULLs.
    pub(crate) entries: Vec<Entry>,
}

impl Statistics {
    pub(crate) fn of(keys: &Keys<'_>) -> Self {
        let kernels = Kernels::get();
        let mut entries = Vec::with_capacity(crate::BLOCK_VECTORS);
        let (mut bounds, mut width): (Option<(i64, i64)>, _) = (None, Some(0));
        let has_nulls = keys.nulls() != 0;
        for (values, mask) in keys.vectors() {
            let valid: usize = mask.iter().map(|word| word.count_ones() as usize).sum();
            let nulls = (values.len() - valid) as u16;
            if valid == 0 {
                entries.push(Entry { nulls, ..Entry::default() });
                continue;
            }
            let (min, max) = kernels.bounds(values);
            bounds = Some(bounds.map_or((min, max), |(least, greatest)| (least.min(min), greatest.max(max))));
            let base = if has_nulls { min.checked_sub(1) } else { Some(min) };
            let bits = base.and_then(|base| u64::try_from(i128::from(max) - i128::from(base)).ok()).map(bits_of);
            width = width.zip(bits).map(|(width, bits)| width.max(bits));
            entries.push(Entry { base: base.unwrap_or(min), min, max, nulls, ..Entry::default() });
        }
        let mut statistics =
            Self { rows: keys.rows(), nulls: keys.nulls(), bounds, runs: runs(keys), width, histogram: None, entries };
        statistics.histogram = statistics.histogram_of(keys);
        statistics
    }

    /// Looks at a sample, and at all keys if by the sample patches pay.
    fn histogram_of(&self, keys: &Keys<'_>) -> Option<Box<Histogram>> {
        let width = self.width?;
        let sampled = self.count_bits(keys, SAMPLED);
        let sample = Self { histogram: Some(sampled), ..self.clone() };
        match sample.packed()? {
            Plan::Packed { width: patched } if patched < width => Some(self.count_bits(keys, 1)),
            _ => None,
        }
    }

    fn count_bits(&self, keys: &Keys<'_>, step: usize) -> Box<Histogram> {
        let mut histogram = Box::new([0; 65]);
        for ((values, _), entry) in keys.vectors().zip(&self.entries) {
            if usize::from(entry.nulls) < values.len() {
                for value in values.iter().step_by(step) {
                    histogram[usize::from(bits_of(value.wrapping_sub(entry.base) as u64))] += step;
                }
            }
        }
        histogram
    }
}

/// Bits that a number needs.
pub(crate) fn bits_of(number: u64) -> u8 {
    (u64::BITS - number.leading_zeros()) as u8
}

fn runs(keys: &Keys<'_>) -> usize {
    if keys.rows() == 0 {
        return 0;
    }
    let borders = keys.validity().map_or(0, |masks| {
        let inside = masks.iter().flatten().map(|word| (word ^ word >> 1) & (u64::MAX >> 1));
        inside.map(|borders| borders.count_ones() as usize).sum::<usize>()
    });
    1 + Kernels::get().changes(keys.values()) + borders
}
