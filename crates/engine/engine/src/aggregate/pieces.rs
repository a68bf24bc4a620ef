//! Flushed groups of a worker: runs of groups, each in the order of the radix partitions of their keys.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::Groups;
use super::carried::Carried;
use super::hashed::mixed;
use super::keys::KeyForm;
use super::state::State;
use super::table::Table;
use crate::vector::bytes_copied;
use crate::{Column, Error, Result};

/// Radix partitions of the keys.
pub(super) const PARTS: usize = 256;

/// Maximum number of groups in a run: they are partitioned while they are in the CPU cache.
const PIECE_GROUPS: usize = 1 << 15;

/// Seed of partition hashes. It differs from the seed of tables, where the keys of one partition would otherwise be
/// neighbours.
const SEED: u64 = 0x2545_f491_4f6c_dd1d;

/// Run of flushed groups, ordered by radix partition.
#[derive(Debug)]
pub struct Piece {
    /// Words of the keys, group by group.
    pub(super) words: Vec<i64>,
    /// First group of each partition, then the number of groups.
    starts: Vec<u32>,
    pub(super) carried: Vec<Column>,
    pub(super) states: Vec<State>,
}

/// All groups of one worker, flushed to radix partitions.
#[derive(Debug)]
pub struct Aside {
    pub(super) keys: Vec<KeyForm>,
    pub(super) pieces: Vec<Piece>,
}

/// Group numbers ordered by radix partition, and the index at which each partition begins.
struct ByPart {
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl Piece {
    /// Returns the groups of a range of partitions.
    pub(super) fn groups_of(&self, parts: Range<usize>) -> Range<usize> {
        self.starts[parts.start] as usize..self.starts[parts.end] as usize
    }

    pub(super) fn len(&self) -> usize {
        self.starts[PARTS] as usize
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * 8
            + self.starts.capacity() * 4
            + self.carried.iter().map(bytes_copied).sum::<usize>()
            + self.states.iter().map(State::memory_bytes).sum::<usize>()
    }
}

impl Aside {
    /// Returns the approximate memory use in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let keys = self.keys.iter().map(KeyForm::memory_bytes).sum::<usize>();
        keys + self.pieces.iter().map(Piece::memory_bytes).sum::<usize>()
    }
}

impl Groups {
    /// Flushes all groups to radix partitions and returns them, with the flushed groups of the workers that were merged
    /// into this one.
    ///
    /// # Errors
    /// [`Error::Form`] if there are no keys; otherwise as [`Groups::finish`].
    pub fn put_aside(self) -> Result<Vec<Aside>> {
        let mut groups = self.whole()?;
        if groups.keys.is_empty() {
            return Err(Error::Form("radix partitions of an aggregation without keys"));
        }
        let hashes = groups.hashes()?;
        groups.put_table_aside(&hashes)?;
        let mut all = groups.others;
        all.push(Aside { keys: groups.keys, pieces: groups.pieces });
        Ok(all)
    }

    /// Returns the partition hash of each key in the table.
    pub(super) fn hashes(&self) -> Result<Vec<u64>> {
        self.table.as_ref().map_or_else(|| Ok(Vec::new()), |table| hashes(self.keys.iter().enumerate(), table))
    }

    /// Flushes the groups of the table, whose keys have these partition hashes, and clears it.
    pub(super) fn put_table_aside(&mut self, hashes: &[u64]) -> Result<()> {
        let Some(table) = &mut self.table else { return Ok(()) };
        let carried = std::mem::take(&mut self.carried);
        self.carried = carried.iter().map(|_| Carried::default()).collect();
        let carried = carried.into_iter().map(|carried| carried.column()).collect::<Result<Vec<_>>>()?;
        let kept = self.spec.states.iter().map(|state| State::new(state.kept)).collect();
        let mut states = std::mem::replace(&mut self.states, kept);
        let pieces = pieces(hashes, table, &carried, &mut states)?;
        self.aside_bytes += pieces.iter().map(Piece::memory_bytes).sum::<usize>();
        self.pieces.extend(pieces);
        table.clear();
        self.rows = 0;
        Ok(())
    }
}

/// Computes the partition hash of each key in a table. It depends on values only, as each worker numbers strings in its
/// own way: strings are hashed by their text. `forms` are the forms of the keys in the table, each with the number of
/// its bit in the null word.
pub(super) fn hashes<'a>(forms: impl Iterator<Item = (usize, &'a KeyForm)>, table: &Table) -> Result<Vec<u64>> {
    let (words, stride) = (table.words(), table.stride());
    if stride == 0 {
        return Ok(vec![SEED; table.len()]);
    }
    let keys = || words.chunks_exact(stride);
    let mut hashes: Vec<u64> = keys().map(|key| mixed(SEED, key[stride - 1])).collect();
    let mut at = 0;
    for (number, form) in forms {
        match form.texts() {
            None => {
                for at in at..at + form.words() {
                    hashes.iter_mut().zip(keys()).for_each(|(hash, key)| *hash = mixed(*hash, key[at]));
                }
            }
            Some(texts) => {
                // The word of a NULL is not the number of a string.
                let with_text = |(hash, key): (&mut u64, &[i64])| -> Result<()> {
                    if key[stride - 1] >> number & 1 == 0 {
                        let text = usize::try_from(key[at]).ok().and_then(|number| texts.hash_of(number));
                        *hash = mixed(*hash, text.ok_or(Error::Form("a key word without a string"))?.cast_signed());
                    }
                    Ok(())
                };
                hashes.iter_mut().zip(keys()).try_for_each(with_text)?;
            }
        }
        at += form.words();
    }
    Ok(hashes)
}

/// Moves the groups of a table, whose keys have these partition hashes, to runs ordered by radix partition. The states
/// are moved out.
pub(super) fn pieces(hashes: &[u64], table: &Table, carried: &[Column], states: &mut [State]) -> Result<Vec<Piece>> {
    let piece = |(number, hashes): (usize, &[u64])| {
        let ByPart { order, starts } = by_part(hashes, number * PIECE_GROUPS);
        Ok(Piece {
            words: table.words_of(&order),
            starts,
            carried: carried.iter().map(|column| column.take(&order)).collect::<Result<_>>()?,
            states: states.iter_mut().map(|state| state.take(&order)).collect(),
        })
    };
    hashes.chunks(PIECE_GROUPS).enumerate().map(piece).collect()
}

/// Returns the radix partition of a hash: its upper bits.
pub(super) fn part_of(hash: u64) -> usize {
    (hash >> (u64::BITS - PARTS.trailing_zeros())) as usize
}

/// Orders the group numbers from `first` on by the radix partitions of their hashes, with a counting sort.
fn by_part(hashes: &[u64], first: usize) -> ByPart {
    let mut starts = vec![0; PARTS + 1];
    hashes.iter().for_each(|hash| starts[part_of(*hash) + 1] += 1);
    (0..PARTS).for_each(|part| starts[part + 1] += starts[part]);
    let (mut next, mut order) = (starts.clone(), vec![0; hashes.len()]);
    let first = u32::try_from(first).expect("fewer than 2^32 groups");
    for (number, hash) in (first..).zip(hashes) {
        let place = &mut next[part_of(*hash)];
        order[*place as usize] = number;
        *place += 1;
    }
    ByPart { order, starts }
}
