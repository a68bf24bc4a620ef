//! Uniform random sample of a stream of rows: those whose row numbers have the smallest hashes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, SchemaRef};

use super::value_hash::mix;
use crate::Result;

/// Draws up to `capacity` rows, all with equal probability. Deterministic: the same rows in the same order give the
/// same sample.
#[derive(Debug)]
pub struct RowSample {
    schema: SchemaRef,
    capacity: usize,
    /// Number of rows added so far.
    rows_seen: u64,
    /// Largest hash that is still drawn.
    threshold: u64,
    row_hashes: Vec<u64>,
    /// Drawn rows, in the order of `hashes`.
    drawn_batches: Vec<RecordBatch>,
}

impl RowSample {
    /// Creates an empty sample of up to `capacity` rows.
    #[must_use]
    pub fn new(schema: SchemaRef, capacity: usize) -> Self {
        Self { schema, capacity, rows_seen: 0, threshold: u64::MAX, row_hashes: Vec::new(), drawn_batches: Vec::new() }
    }

    /// Returns the number of rows added so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.rows_seen
    }

    /// Adds the next rows.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut indices = Vec::new();
        for row in 0..batch.num_rows() {
            let hash = mix(self.rows_seen + row as u64);
            if hash <= self.threshold {
                indices.push(u32::try_from(row).expect("a batch has fewer than 2^32 rows"));
                self.row_hashes.push(hash);
            }
        }
        self.rows_seen += batch.num_rows() as u64;
        if !indices.is_empty() {
            self.drawn_batches.push(copy_rows(batch, indices)?);
        }
        // Up to twice the capacity is collected, so that drawn rows are not copied for every batch.
        if 2 * self.capacity < self.row_hashes.len() {
            self.reduce_to_capacity()?;
        }
        Ok(())
    }

    /// Returns the sample in row order.
    pub fn finish(mut self) -> Result<RecordBatch> {
        self.reduce_to_capacity()?;
        Ok(concat_batches(&self.schema, &self.drawn_batches)?)
    }

    /// Reduces the drawn rows to those with the smallest hashes, up to the capacity.
    fn reduce_to_capacity(&mut self) -> Result<()> {
        if self.row_hashes.len() <= self.capacity {
            return Ok(());
        }
        let mut ordered = self.row_hashes.clone();
        // The hash is a bijection of row numbers, so exactly this many are below.
        let (below, _, _) = ordered.select_nth_unstable(self.capacity);
        self.threshold = below.iter().copied().max().unwrap_or(0);
        let kept: Vec<u32> = (0..)
            .zip(&self.row_hashes)
            .filter(|(_, hash)| **hash <= self.threshold && self.capacity != 0)
            .map(|(index, _)| index)
            .collect();
        let all = concat_batches(&self.schema, &self.drawn_batches)?;
        self.row_hashes = kept.iter().map(|index| self.row_hashes[*index as usize]).collect();
        self.drawn_batches = vec![copy_rows(&all, kept)?];
        Ok(())
    }
}

/// Copies the rows at `indices`; the copy shares no memory with `batch`.
fn copy_rows(batch: &RecordBatch, indices: Vec<u32>) -> Result<RecordBatch> {
    let picked = take_record_batch(batch, &UInt32Array::from(indices))?;
    let columns = picked.columns().iter().map(compact_strings).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(picked.schema(), columns)?)
}

/// Copies strings out of shared buffers.
fn compact_strings(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Utf8View => Arc::new(values.as_string_view().gc()),
        DataType::List(field) if *field.data_type() == DataType::Utf8View => {
            let plain = Field::new(field.name(), DataType::Utf8, field.is_nullable());
            cast(&cast(values, &DataType::List(Arc::new(plain)))?, values.data_type())?
        }
        _ => Arc::clone(values),
    })
}
