//! Hash partitioning of rows that are spilled.

use xxhash_rust::xxh3::xxh3_64;

use crate::aggregate::encode_float;
use crate::{Batch, Column, ColumnData, Error, Result};

/// Partitions of one level.
pub const PARTITIONS: usize = 32;

/// Maximum number of levels: a partition that exceeds memory is partitioned recursively.
pub const PARTITION_LEVELS: u32 = 4;

/// Hash bits that select the partition of one level.
const PARTITION_BITS: u32 = PARTITIONS.trailing_zeros();

const HASH_SEED: u64 = 0x51_7c_c1_b7_27_22_0a_95;
const NULL_HASH: u64 = 0x9e6c_63d0_876a_46d1;

/// Hash partitioning: keys, treatment of NULLs and recursion level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPartitioning {
    /// Key columns: rows with equal keys are in the same partition. Without keys all rows are in partition 0.
    pub keys: Vec<usize>,
    /// Whether NULLs are equal to each other; otherwise a row with a NULL key may be in any partition.
    pub nulls_are_equal: bool,
    /// Number of times that the rows have been partitioned before: each level uses other hash bits.
    pub level: u32,
}

impl HashPartitioning {
    /// Returns the partitioning of the next level; `None` after the last level or without keys.
    #[must_use]
    pub fn next_level(&self) -> Option<Self> {
        let level = self.level + 1;
        (level < PARTITION_LEVELS && !self.keys.is_empty()).then(|| Self { level, ..self.clone() })
    }

    /// Returns whether any row of a batch has a NULL key.
    #[must_use]
    pub fn has_null(&self, batch: &Batch) -> bool {
        self.keys.iter().filter_map(|key| batch.columns.get(*key)).any(Column::has_null)
    }

    /// Partitions the rows of a batch and passes each nonempty partition to `take`.
    ///
    /// # Errors
    /// Errors of `take`; [`Error::Internal`] if a key column is missing.
    pub fn partition(&self, batch: &Batch, mut take: impl FnMut(usize, Batch) -> Result<()>) -> Result<()> {
        if batch.rows == 0 {
            return Ok(());
        }
        if self.keys.is_empty() {
            return take(0, batch.clone());
        }
        let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); PARTITIONS];
        for (row, hash) in (0_u32..).zip(self.hashes(batch)?) {
            rows_of[(hash >> (self.level * PARTITION_BITS)) as usize % PARTITIONS].push(row);
        }
        for (part, rows) in rows_of.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let columns = batch.columns.iter().map(|column| column.take(&rows)).collect::<Result<_>>()?;
            take(part, Batch { rows: rows.len(), columns })?;
        }
        Ok(())
    }

    fn hashes(&self, batch: &Batch) -> Result<Vec<u64>> {
        let mut hashes = vec![HASH_SEED; batch.rows];
        let mut null_key_rows = Vec::new();
        for key in &self.keys {
            let column = batch.columns.get(*key).filter(|column| column.rows() == batch.rows);
            let column = column.ok_or(Error::Internal("the column of a hash partitioning key is missing"))?;
            mix_column(&mut hashes, column)?;
            if let (false, Some(valid)) = (self.nulls_are_equal, &column.validity) {
                null_key_rows.extend(valid.not().ones());
            }
        }
        // Rows with NULL keys never match: spreads them, as there may be too many for one partition.
        for row in null_key_rows {
            hashes[row] = mix(HASH_SEED, row as u64);
        }
        Ok(hashes)
    }
}

/// Mixes a column's values into the hashes. Equal values have the same hash in every form.
fn mix_column(hashes: &mut [u64], column: &Column) -> Result<()> {
    let valid = column.validity.as_deref();
    let each = |hashes: &mut [u64], word: &dyn Fn(usize) -> u64| {
        for (row, hash) in hashes.iter_mut().enumerate() {
            let is_null = valid.is_some_and(|bits| !bits.get(row));
            *hash = mix(*hash, if is_null { NULL_HASH } else { word(row) });
        }
    };
    match &column.data {
        ColumnData::Bools(bits) => each(hashes, &|row| u64::from(bits.get(row))),
        ColumnData::Ints { values, .. } => each(hashes, &|row| values[row].cast_unsigned()),
        ColumnData::WideInts(values) => each(hashes, &|row| wide_word(values[row])),
        ColumnData::Floats(values) => each(hashes, &|row| encode_float(values[row]).cast_unsigned()),
        ColumnData::Texts(texts) => each(hashes, &|row| xxh3_64(texts.value(row).as_bytes())),
        ColumnData::Dictionary { indices: codes, dictionary: strings } => {
            each(hashes, &|row| xxh3_64(strings.get(codes[row]).as_bytes()))
        }
        ColumnData::Opaque(_) => return Err(Error::Internal("the type of a hash partitioning key has no equality")),
    }
    Ok(())
}

/// Returns the hash word of a 128-bit integer; for one that fits in 64 bits, the word of the 64-bit integer.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the two halves")]
fn wide_word(value: i128) -> u64 {
    match i64::try_from(value) {
        Ok(narrow) => narrow.cast_unsigned(),
        Err(_) => mix(value as u64, (value >> 64) as u64),
    }
}

/// Mixes one more word into a hash, so that all bits of both affect all bits of the result.
#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(0xa076_1d64_78bd_642f_u64);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    let (low, high) = (product as u64, (product >> 64) as u64);
    let folded = low ^ high;
    (folded ^ folded >> 32).wrapping_mul(0xe703_7ed1_a0b4_28db)
}
