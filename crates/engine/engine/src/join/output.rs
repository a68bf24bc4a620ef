//! Output batches of pairs of rows.

use std::sync::Arc;

use super::{JoinTable, OutputColumn};
use crate::{Batch, Bits, Column, Error, Form, NONE, Result};

/// Rows of both sides, pairwise.
pub(super) struct Pairs<'a> {
    pub(super) probe: &'a Batch,
    /// The probe rows; `None` where they are all.
    pub(super) probe_rows: Option<&'a [u32]>,
    /// The build rows, [`NONE`] for the NULLs of a probe row without a match.
    pub(super) build_rows: &'a [u32],
}

/// The rows of a probe batch.
pub(super) fn probe_column(batch: &Batch, position: usize, rows: Option<&[u32]>) -> Result<Column> {
    let column = batch.columns.get(position).ok_or(Error::Form("a column of a join's probe side"))?;
    match rows {
        None => Ok(column.clone()),
        Some(rows) => column.take(rows),
    }
}

impl JoinTable {
    /// The columns of pairs.
    pub(super) fn pairs(&self, columns: &[OutputColumn], pairs: &Pairs<'_>) -> Result<Batch> {
        let rows = BuildRows::new(pairs.build_rows);
        let column = |column: &OutputColumn| match *column {
            OutputColumn::Build(position) => self.build_column(position, &rows),
            OutputColumn::Probe(position) => probe_column(pairs.probe, position, pairs.probe_rows),
            OutputColumn::Mark => Err(Error::Form("a mark of pairs")),
        };
        Ok(Batch { rows: pairs.build_rows.len(), columns: columns.iter().map(column).collect::<Result<_>>()? })
    }

    fn build_column(&self, position: usize, rows: &BuildRows<'_>) -> Result<Column> {
        let column = self.column(position)?;
        let Some((present, some)) = &rows.partly else { return column.take(rows.rows) };
        if column.rows() == 0 {
            return Ok(Form::of(column).nulls(rows.rows.len()));
        }
        let taken = column.take(some)?;
        let validity = match taken.validity {
            Some(validity) => Arc::new(validity.and(present)),
            None => Arc::clone(present),
        };
        Ok(Column { data: taken.data, validity: Some(validity) })
    }
}

/// Build rows, some of which may be none.
struct BuildRows<'a> {
    rows: &'a [u32],
    /// Which are rows, and row 0 instead of the others.
    partly: Option<(Arc<Bits>, Vec<u32>)>,
}

impl<'a> BuildRows<'a> {
    fn new(rows: &'a [u32]) -> Self {
        let is_partly = rows.iter().fold(false, |is_partly, row| is_partly | (*row == NONE));
        let partly = is_partly.then(|| {
            let present = Bits::of(rows.len(), |row| rows[row] != NONE);
            (Arc::new(present), rows.iter().map(|row| if *row == NONE { 0 } else { *row }).collect())
        });
        Self { rows, partly }
    }
}
