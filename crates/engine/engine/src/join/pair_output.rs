//! Output batches made of pairs of rows.

use std::sync::Arc;

use super::{JoinHashTable, OutputColumn};
use crate::{Batch, Bitmap, Column, Error, NONE, PhysicalType, Result};

/// Pairs of a probe row and a build row.
pub(super) struct RowPairs<'a> {
    /// Batch that the probe rows belong to.
    pub(super) probe: &'a Batch,
    /// Probe row of each pair; `None` if the pairs are all rows of the batch in order.
    pub(super) probe_rows: Option<&'a [u32]>,
    /// Build row of each pair; [`NONE`] pads a probe row without a match with NULLs.
    pub(super) build_rows: &'a [u32],
}

/// Returns a column of the probe batch, restricted to `rows` if given.
pub(super) fn probe_column(batch: &Batch, position: usize, rows: Option<&[u32]>) -> Result<Column> {
    let column =
        batch.columns.get(position).ok_or(Error::Internal("a probe-side batch lacks a column of the output"))?;
    match rows {
        None => Ok(column.clone()),
        Some(rows) => column.take(rows),
    }
}

impl JoinHashTable {
    /// Builds a batch of these columns from pairs.
    pub(super) fn build_batch(&self, columns: &[OutputColumn], pairs: &RowPairs<'_>) -> Result<Batch> {
        let rows = BuildRows::new(pairs.build_rows);
        let column = |column: &OutputColumn| match *column {
            OutputColumn::Build(position) => self.build_column(position, &rows),
            OutputColumn::Probe(position) => probe_column(pairs.probe, position, pairs.probe_rows),
            OutputColumn::Mark => Err(Error::Internal("a join that outputs pairs has a mark column")),
        };
        Ok(Batch { rows: pairs.build_rows.len(), columns: columns.iter().map(column).collect::<Result<_>>()? })
    }

    /// Gathers a build column; pairs without a build row get NULL.
    fn build_column(&self, position: usize, rows: &BuildRows<'_>) -> Result<Column> {
        let column = self.column(position)?;
        let Some((present, some)) = &rows.padding else { return column.take(rows.rows) };
        if column.rows() == 0 {
            return Ok(PhysicalType::from_column(column).null_column(rows.rows.len()));
        }
        let taken = column.take(some)?;
        let validity = match taken.validity {
            Some(validity) => Arc::new(validity.and(present)),
            None => Arc::clone(present),
        };
        Ok(Column { data: taken.data, validity: Some(validity) })
    }
}

/// Build rows to gather, some of which may be [`NONE`].
struct BuildRows<'a> {
    rows: &'a [u32],
    /// If any row is [`NONE`]: bitmap of the other rows, and the rows with 0 in place of [`NONE`].
    padding: Option<(Arc<Bitmap>, Vec<u32>)>,
}

impl<'a> BuildRows<'a> {
    fn new(rows: &'a [u32]) -> Self {
        let is_partly = rows.iter().fold(false, |is_partly, row| is_partly | (*row == NONE));
        let partly = is_partly.then(|| {
            let present = Bitmap::from_fn(rows.len(), |row| rows[row] != NONE);
            (Arc::new(present), rows.iter().map(|row| if *row == NONE { 0 } else { *row }).collect())
        });
        Self { rows, padding: partly }
    }
}
