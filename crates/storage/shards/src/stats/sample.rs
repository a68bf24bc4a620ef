//! A uniform sample of rows that pass by: those whose numbers have the smallest hashes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::{cast, concat_batches, take_record_batch};
use arrow::datatypes::{DataType, Field, SchemaRef};

use super::hash::mix;
use crate::Result;

/// Draws at most so many rows of all that are shown to it, each with the same chance. Deterministic: the same rows in the
/// same order give the same sample.
#[derive(Debug)]
pub struct RowSample {
    schema: SchemaRef,
    capacity: usize,
    /// Rows seen so far.
    seen: u64,
    /// Rows with a greater hash are not drawn.
    threshold: u64,
    hashes: Vec<u64>,
    /// Drawn rows, as many as `hashes` in the same order.
    drawn: Vec<RecordBatch>,
}

impl RowSample {
    /// An empty sample of rows with `schema`.
    #[must_use]
    pub fn new(schema: SchemaRef, capacity: usize) -> Self {
        Self { schema, capacity, seen: 0, threshold: u64::MAX, hashes: Vec::new(), drawn: Vec::new() }
    }

    /// Rows seen so far.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Shows the next rows.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut indices = Vec::new();
        for row in 0..batch.num_rows() {
            let hash = mix(self.seen + row as u64);
            if hash <= self.threshold {
                indices.push(u32::try_from(row).expect("a batch has fewer than 2^32 rows"));
                self.hashes.push(hash);
            }
        }
        self.seen += batch.num_rows() as u64;
        if !indices.is_empty() {
            self.drawn.push(pick(batch, indices)?);
        }
        // Twice the capacity, so that drawn rows are not moved for every batch.
        if 2 * self.capacity < self.hashes.len() {
            self.shrink()?;
        }
        Ok(())
    }

    /// The rows drawn, in the order in which they came.
    pub fn finish(mut self) -> Result<RecordBatch> {
        self.shrink()?;
        Ok(concat_batches(&self.schema, &self.drawn)?)
    }

    /// Leaves the rows with the smallest hashes, as many as the capacity.
    fn shrink(&mut self) -> Result<()> {
        if self.hashes.len() <= self.capacity {
            return Ok(());
        }
        let mut ordered = self.hashes.clone();
        // Numbers of rows differ, and so do their hashes: exactly this many are below.
        let (below, _, _) = ordered.select_nth_unstable(self.capacity);
        self.threshold = below.iter().copied().max().unwrap_or(0);
        let kept: Vec<u32> = (0..)
            .zip(&self.hashes)
            .filter(|(_, hash)| **hash <= self.threshold && self.capacity != 0)
            .map(|(index, _)| index)
            .collect();
        let all = concat_batches(&self.schema, &self.drawn)?;
        self.hashes = kept.iter().map(|index| self.hashes[*index as usize]).collect();
        self.drawn = vec![pick(&all, kept)?];
        Ok(())
    }
}

/// The rows at `indices`, sharing no memory with `batch`.
fn pick(batch: &RecordBatch, indices: Vec<u32>) -> Result<RecordBatch> {
    let picked = take_record_batch(batch, &UInt32Array::from(indices))?;
    let columns = picked.columns().iter().map(compact).collect::<Result<Vec<_>>>()?;
    Ok(RecordBatch::try_new(picked.schema(), columns)?)
}

/// Text views without the text that none of them shows.
fn compact(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Utf8View => Arc::new(values.as_string_view().gc()),
        DataType::List(field) if *field.data_type() == DataType::Utf8View => {
            let plain = Field::new(field.name(), DataType::Utf8, field.is_nullable());
            cast(&cast(values, &DataType::List(Arc::new(plain)))?, values.data_type())?
        }
        _ => Arc::clone(values),
    })
}
