//! Flushed groups of a worker: runs of groups, each in the order of the radix partitions of their keys.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::Groups;
use super::aggregate_state::State;
use super::carried_columns::CarriedColumn;
use super::group_table::GroupTable;
use super::hash_table::mix;
use super::key_encoding::KeyEncoding;
use crate::vector::copied_bytes;
use crate::{Column, Error, Result};

/// Radix partitions of the keys.
pub(super) const PARTITIONS: usize = 256;

/// Maximum number of groups in a run: they are partitioned while they are in the CPU cache.
const RUN_GROUPS_MAX: usize = 1 << 15;

/// Seed of partition hashes. It differs from the seed of tables, where the keys of one partition would otherwise be
/// neighbours.
const PARTITION_SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Run of flushed groups, ordered by radix partition.
#[derive(Debug)]
pub struct FlushedRun {
    /// Words of the keys, group by group.
    pub(super) key_words: Vec<i64>,
    /// First group of each partition, then the number of groups.
    starts: Vec<u32>,
    pub(super) carried: Vec<Column>,
    pub(super) states: Vec<State>,
}

/// All groups of one worker, flushed to radix partitions.
#[derive(Debug)]
pub struct FlushedGroups {
    pub(super) keys: Vec<KeyEncoding>,
    pub(super) runs: Vec<FlushedRun>,
}

/// Group numbers ordered by radix partition, and the index at which each partition begins.
struct PartitionOrder {
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl FlushedRun {
    /// Returns the groups of a range of partitions.
    pub(super) fn groups_in(&self, parts: Range<usize>) -> Range<usize> {
        self.starts[parts.start] as usize..self.starts[parts.end] as usize
    }

    pub(super) fn len(&self) -> usize {
        self.starts[PARTITIONS] as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.key_words.capacity() * 8
            + self.starts.capacity() * 4
            + self.carried.iter().map(copied_bytes).sum::<usize>()
            + self.states.iter().map(State::memory_bytes).sum::<usize>()
    }
}

impl FlushedGroups {
    /// Returns the approximate memory use in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let keys = self.keys.iter().map(KeyEncoding::memory_bytes).sum::<usize>();
        keys + self.runs.iter().map(FlushedRun::memory_bytes).sum::<usize>()
    }
}

impl Groups {
    /// Flushes all groups to radix partitions and returns them, with the flushed groups of the workers that were merged
    /// into this one.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are no keys; otherwise as [`Groups::finish`].
    pub fn flush_to_partitions(self) -> Result<Vec<FlushedGroups>> {
        let mut groups = self.with_border_merged()?;
        if groups.keys.is_empty() {
            return Err(Error::Internal(
                "groups of an aggregation without keys were to be flushed to radix partitions",
            ));
        }
        let hashes = groups.partition_hashes()?;
        groups.flush_table(&hashes)?;
        let mut all = groups.merged_flushed;
        all.push(FlushedGroups { keys: groups.keys, runs: groups.flushed_runs });
        Ok(all)
    }

    /// Returns the partition hash of each key in the table.
    pub(super) fn partition_hashes(&self) -> Result<Vec<u64>> {
        self.table
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |table| partition_hashes(self.keys.iter().enumerate(), table))
    }

    /// Flushes the groups of the table, whose keys have these partition hashes, and clears it.
    pub(super) fn flush_table(&mut self, hashes: &[u64]) -> Result<()> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let carried = std::mem::take(&mut self.carried);
        self.carried = carried.iter().map(|_| CarriedColumn::default()).collect();
        let carried = carried.into_iter().map(|carried| carried.concat()).collect::<Result<Vec<_>>>()?;
        let kept = self.spec.states.iter().map(|state| State::new(state.kind)).collect();
        let mut states = std::mem::replace(&mut self.states, kept);
        let pieces = partition_runs(hashes, table, &carried, &mut states)?;
        self.flushed_bytes += pieces.iter().map(FlushedRun::memory_bytes).sum::<usize>();
        self.flushed_runs.extend(pieces);
        table.clear();
        self.table_rows = 0;
        Ok(())
    }
}

/// Computes the partition hash of each key in a table. It depends on values only, as each worker numbers strings in its
/// own way: strings are hashed by their text. `forms` are the forms of the keys in the table, each with the number of
/// its bit in the null word.
pub(super) fn partition_hashes<'a>(
    forms: impl Iterator<Item = (usize, &'a KeyEncoding)>,
    table: &GroupTable,
) -> Result<Vec<u64>> {
    let (words, stride) = (table.key_words(), table.stride());
    if stride == 0 {
        return Ok(vec![PARTITION_SEED; table.len()]);
    }
    let keys = || words.chunks_exact(stride);
    let mut hashes: Vec<u64> = keys().map(|key| mix(PARTITION_SEED, key[stride - 1])).collect();
    let mut at = 0;
    for (number, form) in forms {
        match form.numbered_texts() {
            None => {
                for at in at..at + form.word_count() {
                    hashes.iter_mut().zip(keys()).for_each(|(hash, key)| *hash = mix(*hash, key[at]));
                }
            }
            Some(texts) => {
                // The word of a NULL is not the number of a string.
                let with_text = |(hash, key): (&mut u64, &[i64])| -> Result<()> {
                    if key[stride - 1] >> number & 1 == 0 {
                        let text = usize::try_from(key[at]).ok().and_then(|number| texts.hash_of(number));
                        *hash = mix(
                            *hash,
                            text.ok_or(Error::Internal("the number that encodes a string group key has no string"))?
                                .cast_signed(),
                        );
                    }
                    Ok(())
                };
                hashes.iter_mut().zip(keys()).try_for_each(with_text)?;
            }
        }
        at += form.word_count();
    }
    Ok(hashes)
}

/// Moves the groups of a table, whose keys have these partition hashes, to runs ordered by radix partition. The states
/// are moved out.
pub(super) fn partition_runs(
    hashes: &[u64],
    table: &GroupTable,
    carried: &[Column],
    states: &mut [State],
) -> Result<Vec<FlushedRun>> {
    let piece = |(number, hashes): (usize, &[u64])| {
        let PartitionOrder { order, starts } = order_by_partition(hashes, number * RUN_GROUPS_MAX);
        Ok(FlushedRun {
            key_words: table.key_words_of(&order),
            starts,
            carried: carried.iter().map(|column| column.take(&order)).collect::<Result<_>>()?,
            states: states.iter_mut().map(|state| state.take(&order)).collect(),
        })
    };
    hashes.chunks(RUN_GROUPS_MAX).enumerate().map(piece).collect()
}

/// Returns the radix partition of a hash: its upper bits.
pub(super) fn partition_of(hash: u64) -> usize {
    (hash >> (u64::BITS - PARTITIONS.trailing_zeros())) as usize
}

/// Orders the group numbers from `first` on by the radix partitions of their hashes, with a counting sort.
fn order_by_partition(hashes: &[u64], first: usize) -> PartitionOrder {
    let mut starts = vec![0; PARTITIONS + 1];
    hashes.iter().for_each(|hash| starts[partition_of(*hash) + 1] += 1);
    (0..PARTITIONS).for_each(|part| starts[part + 1] += starts[part]);
    let (mut next, mut order) = (starts.clone(), vec![0; hashes.len()]);
    let first = u32::try_from(first).expect("fewer than 2^32 groups");
    for (number, hash) in (first..).zip(hashes) {
        let place = &mut next[partition_of(*hash)];
        order[*place as usize] = number;
        *place += 1;
    }
    PartitionOrder { order, starts }
}
