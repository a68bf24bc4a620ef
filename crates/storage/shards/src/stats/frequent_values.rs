//! Finds frequent values in a sample.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use arrow::array::{ArrayRef, StringViewArray};
use types::SqlType;

use super::value_visitor::{ValueVisitor, visit};
use crate::{Datum, Result};

/// Largest number of frequent values per column.
const HEAVY_HITTERS_MAX: usize = 16;
/// Number of occurrences in the sample from which on a value counts as frequent; fewer could be coincidence.
const SAMPLE_OCCURRENCES_MIN: u64 = 4;
/// A frequent value must make up at least one in this many of the sample's rows.
const SHARE_DIVISOR: u64 = 256;
/// Largest size in bytes of a frequent text or byte string.
const VALUE_BYTES_MAX: usize = crate::datum::BOUND_BYTES_MAX;

/// Returns the most frequent values of `sample`, with their estimated number in `rows` rows.
pub(crate) fn heavy_hitters(sample: &ArrayRef, sql_type: &SqlType, rows: u64) -> Result<Vec<(Datum, u64)>> {
    visit(sample, sql_type, FrequencyCounter { sample_rows: sample.len() as u64, rows })
}

/// Visitor that counts the occurrences of each value.
struct FrequencyCounter {
    /// Rows of the sample.
    sample_rows: u64,
    /// Rows of the shard.
    rows: u64,
}

impl ValueVisitor for FrequencyCounter {
    type Output = Vec<(Datum, u64)>;

    fn visit_ordered<T: Copy>(
        self,
        values: impl Iterator<Item = Option<T>>,
        _order: impl Fn(T, T) -> Ordering,
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) -> Self::Output {
        let mut counts: HashMap<u64, (T, u64)> = HashMap::new();
        for value in values.flatten() {
            counts.entry(hash(value)).or_insert((value, 0)).1 += 1;
        }
        let wanted = SAMPLE_OCCURRENCES_MIN.max(self.sample_rows.div_ceil(SHARE_DIVISOR));
        let mut frequent: Vec<_> = counts.into_iter().filter(|(_, (_, seen))| wanted <= *seen).collect();
        // Ties are broken by hash, so that the same rows always give the same list.
        frequent.sort_unstable_by_key(|(hash, (_, seen))| (Reverse(*seen), *hash));
        frequent
            .into_iter()
            .map(|(_, (value, seen))| (datum(value), self.scale_to_all_rows(seen)))
            .filter(|(value, _)| is_short(value))
            .take(HEAVY_HITTERS_MAX)
            .collect()
    }

    fn visit_numbers<T: Copy + Ord>(
        self,
        values: &[T],
        hash: impl Fn(T) -> u64,
        datum: impl Fn(T) -> Datum,
    ) -> Self::Output {
        self.visit_ordered(values.iter().map(|value| Some(*value)), |a, b| a.cmp(&b), hash, datum)
    }

    fn visit_texts(self, values: &StringViewArray, hash: impl Fn(&[u8]) -> u64) -> Self::Output {
        let hash = |text: &str| hash(text.as_bytes());
        self.visit_ordered(values.iter(), Ord::cmp, hash, |text| Datum::Text(text.to_owned()))
    }

    fn visit_unordered(self, _hashes: impl Iterator<Item = Option<u64>>) -> Self::Output {
        Vec::new()
    }
}

impl FrequencyCounter {
    /// Scales a count in the sample to all rows.
    fn scale_to_all_rows(&self, seen: u64) -> u64 {
        let estimate = u128::from(seen) * u128::from(self.rows) / u128::from(self.sample_rows.max(1));
        u64::try_from(estimate).expect("a value occurs in no more than all rows")
    }
}

fn is_short(value: &Datum) -> bool {
    match value {
        Datum::Text(text) => text.len() <= VALUE_BYTES_MAX,
        Datum::Bytes(bytes) => bytes.len() <= VALUE_BYTES_MAX,
        _ => true,
    }
}
