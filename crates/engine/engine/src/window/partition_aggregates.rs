//! Aggregates over all rows of a partition that exceeds memory: the caller spills the rows and reads them a second time
//! to append the values.

use std::sync::Arc;

use super::frame::FrameBound;
use super::partition_chunk::is_same_partition;
use super::{OrderedRows, WindowFunction, WindowSpec, find_starts};
use crate::aggregate::{AggregateKind, AggregateSpec, Groups, StateSpec};
use crate::sort::SortSpec;
use crate::{Batch, Column, Error, PhysicalType, Result};

/// Aggregates over one partition, updated batch by batch.
#[derive(Debug)]
pub struct PartitionAggregates {
    spec: Arc<SortSpec>,
    groups: Groups,
    /// Last row added, to detect the end of the partition.
    last: Option<Batch>,
}

impl PartitionAggregates {
    /// Starts a partition; `None` if a function is not an aggregate over the entire partition.
    #[must_use]
    pub fn new(spec: &Arc<SortSpec>) -> Option<Self> {
        let state = |function: &WindowFunction| match function {
            // Of 0 and -0, which compare equal, a frame returns the last and a group the first.
            WindowFunction::Aggregate {
                kind: AggregateKind::Min(PhysicalType::Floats) | AggregateKind::Max(PhysicalType::Floats),
                ..
            } => None,
            WindowFunction::Aggregate { kind: kept, column, frame }
                if frame.start == FrameBound::Unbounded && frame.end == FrameBound::Unbounded =>
            {
                Some(StateSpec { kind: *kept, column: *column, filter: None })
            }
            _ => None,
        };
        let states = spec.windows.as_ref()?.functions.iter().map(state).collect::<Option<Vec<_>>>()?;
        let groups = Groups::new(&Arc::new(AggregateSpec { states, ..AggregateSpec::default() }));
        Some(Self { spec: Arc::clone(spec), groups, last: None })
    }

    /// Adds the leading rows of a batch that belong to the partition, and returns their number.
    ///
    /// # Errors
    /// Errors of the aggregates.
    pub fn add(&mut self, batch: &Batch) -> Result<usize> {
        let rows = self.leading_rows(batch)?;
        if 0 < rows {
            let own = batch.clone().slice(0, rows);
            self.groups.add(&own)?;
            self.last = Some(own.slice(rows - 1, rows));
        }
        Ok(rows)
    }

    fn leading_rows(&self, batch: &Batch) -> Result<usize> {
        let windows = self.windows()?;
        if let Some(last) = &self.last
            && !is_same_partition(windows, last, batch)?
        {
            return Ok(0);
        }
        let ordered = OrderedRows { rows: batch.rows, columns: &batch.columns, order: None };
        let starts = find_starts(&ordered, &windows.partition_by, 0..batch.rows)?;
        Ok(starts.ones().find(|start| 0 < *start).unwrap_or(batch.rows))
    }

    fn windows(&self) -> Result<&WindowSpec> {
        self.spec.windows.as_ref().ok_or(Error::Internal("window functions were requested from a sort that has none"))
    }

    /// Returns the value of each function, as a column of one row.
    ///
    /// # Errors
    /// Errors of the aggregates.
    pub fn finish(self) -> Result<Vec<Column>> {
        let rows = self.groups.finish()?;
        let batch = rows.batch(0).ok_or(Error::Internal("the aggregation over a window partition returned no row"))?;
        Ok(batch.columns)
    }
}
