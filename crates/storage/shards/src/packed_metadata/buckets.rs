//! Packed buckets of the rows of neighbouring shards.

use crate::ShardBuckets;
use crate::packed_metadata::integer_packing::PackedNumbers;

/// Runs of all shards' buckets, packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackedBuckets {
    /// Distinct schemes; few, because tables are seldom redistributed.
    schemes: Box<[u64]>,
    /// Scheme of each shard: 0 for none, else its index plus 1.
    scheme_index: PackedNumbers,
    /// End of each shard's runs in `numbers` and `counts`.
    run_ends: PackedNumbers,
    /// Bucket of each run.
    run_buckets: PackedNumbers,
    /// Number of rows of each run.
    run_rows: PackedNumbers,
}

impl PackedBuckets {
    pub(super) fn pack<'a>(shards: impl Iterator<Item = Option<&'a ShardBuckets>>) -> Self {
        let mut schemes: Vec<u64> = Vec::new();
        let (mut which, mut ends, mut numbers, mut counts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for buckets in shards {
            let scheme = buckets.map(|buckets| {
                let known = schemes.iter().position(|scheme| *scheme == buckets.scheme);
                known.unwrap_or_else(|| {
                    schemes.push(buckets.scheme);
                    schemes.len() - 1
                })
            });
            which.push(scheme.map_or(0, |scheme| scheme as u64 + 1));
            for (bucket, count) in buckets.into_iter().flat_map(ShardBuckets::runs) {
                numbers.push(u64::from(*bucket));
                counts.push(u64::from(*count));
            }
            ends.push(numbers.len() as u64);
        }
        Self {
            schemes: schemes.into(),
            scheme_index: PackedNumbers::pack(&which),
            run_ends: PackedNumbers::pack(&ends),
            run_buckets: PackedNumbers::pack(&numbers),
            run_rows: PackedNumbers::pack(&counts),
        }
    }

    /// Restores the buckets of the shard at a position.
    pub(super) fn get(&self, shard: usize) -> Option<ShardBuckets> {
        let index = |number: u64| usize::try_from(number).expect("offsets into memory fit usize");
        let scheme = self.schemes[index(self.scheme_index.get(shard).checked_sub(1)?)];
        let first = shard.checked_sub(1).map_or(0, |before| self.run_ends.get(before));
        let run = |run| {
            let bucket = u8::try_from(self.run_buckets.get(run)).expect("a u8 was packed");
            (bucket, u32::try_from(self.run_rows.get(run)).expect("a u32 was packed"))
        };
        Some(ShardBuckets::new(scheme, (index(first)..index(self.run_ends.get(shard))).map(run).collect()))
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let numbers = [&self.scheme_index, &self.run_ends, &self.run_buckets, &self.run_rows];
        size_of_val(&*self.schemes) + numbers.into_iter().map(PackedNumbers::heap_bytes).sum::<usize>()
    }
}
