//! Aggregates over all rows of a partition that has no room in memory: the rows go to a file, and come back with the aggregates' values.

use std::sync::Arc;

use super::frame::Edge;
use super::part::is_continued;
use super::{Ordered, WindowFunction, WindowSpec, starts};
use crate::aggregate::{AggregateSpec, Groups, Kept, StateSpec};
use crate::sort::SortSpec;
use crate::{Batch, Column, Error, Form, Result};

/// Aggregates of one partition, whose rows come batch by batch.
#[derive(Debug)]
pub struct PartitionTotals {
    spec: Arc<SortSpec>,
    groups: Groups,
    /// The last row that has come.
    last: Option<Batch>,
}

impl PartitionTotals {
    /// Begins a partition; `None` where a function needs more than aggregates over the whole partition.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Option<Self> {
        let state = |function: &WindowFunction| match function {
            // Of equal floats, which may be 0 and -0, a frame has the last and a group the first.
            WindowFunction::Kept { kept: Kept::Min(Form::Floats) | Kept::Max(Form::Floats), .. } => None,
            WindowFunction::Kept { kept, column, frame }
                if frame.start == Edge::Partition && frame.end == Edge::Partition =>
            {
                Some(StateSpec { kept: *kept, column: *column, filter: None })
            }
            _ => None,
        };
        let states = spec.windows.as_ref()?.functions.iter().map(state).collect::<Option<Vec<_>>>()?;
        let groups = Groups::new(&Arc::new(AggregateSpec { states, ..AggregateSpec::default() }));
        Some(Self { spec: Arc::clone(spec), groups, last: None })
    }

    /// Adds the rows at the start of a batch that belong to the partition, and returns how many these are.
    ///
    /// # Errors
    /// Those of the aggregates.
    pub fn add(&mut self, batch: &Batch) -> Result<usize> {
        let rows = self.own_rows(batch)?;
        if 0 < rows {
            let own = batch.clone().slice(0, rows);
            self.groups.add(&own)?;
            self.last = Some(own.slice(rows - 1, rows));
        }
        Ok(rows)
    }

    fn own_rows(&self, batch: &Batch) -> Result<usize> {
        let windows = self.windows()?;
        if let Some(last) = &self.last
            && !is_continued(windows, last, batch)?
        {
            return Ok(0);
        }
        let ordered = Ordered { rows: batch.rows, columns: &batch.columns, order: None };
        let starts = starts(&ordered, &windows.partition_by, 0..batch.rows)?;
        Ok(starts.ones().find(|start| 0 < *start).unwrap_or(batch.rows))
    }

    fn windows(&self) -> Result<&WindowSpec> {
        self.spec.windows.as_ref().ok_or(Error::Form("window functions that are not there"))
    }

    /// Returns the value of each function, as a column of one row.
    ///
    /// # Errors
    /// Those of the aggregates.
    pub fn finish(self) -> Result<Vec<Column>> {
        let rows = self.groups.finish()?;
        let batch = rows.batch(0).ok_or(Error::Form("a partition without totals"))?;
        Ok(batch.columns)
    }
}
