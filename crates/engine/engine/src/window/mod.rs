//! Window functions over sorted rows.
//!
//! Rows in memory are divided into shares of whole partitions, which are computed in parallel. Rows that come from
//! spill files are computed partition by partition, or part by part of a long partition.
//!
//! - `partition.rs`: starts of partitions and of groups of peers.
//! - `compute.rs`: the result columns of a share of the partitions.
//! - `place.rs`: ranking functions such as `rank` and `ntile`.
//! - `pick.rs`: functions that return the value of another row, such as `lag` and `first_value`.
//! - `frame.rs`: window frames; `distance.rs`: frames in RANGE mode with an offset.
//! - `total.rs`: aggregates over frames.
//! - `by_partition.rs`: buffers sorted rows until their partition is complete; `part.rs`: functions of one part of a
//!   long partition; `partition_totals.rs`: aggregates over all rows of a partition that exceeds memory.

mod by_partition;
mod compute;
mod distance;
mod frame;
mod part;
mod partition;
mod partition_totals;
mod pick;
mod place;
mod total;

#[cfg(test)]
mod tests;

pub use by_partition::ByPartition;
pub(crate) use compute::{Ordered, columns, form_of};
pub use distance::{Distance, Near};
pub use frame::{Edge, Frame, Units};
pub(crate) use partition::starts;
pub use partition_totals::PartitionTotals;

use crate::Column;
use crate::aggregate::Kept;

/// Window functions over one PARTITION BY and ORDER BY, by which the rows are sorted.
#[derive(Debug, Clone)]
pub struct WindowSpec {
    /// PARTITION BY columns.
    pub partition_by: Vec<usize>,
    /// ORDER BY columns: rows that are equal in all of them are peers.
    pub order_by: Vec<usize>,
    /// Functions, each of which adds a column to the result.
    pub functions: Vec<WindowFunction>,
}

/// Window function.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    /// Number of the row in its partition, counted from 1.
    RowNumber,
    /// Number of the row's first peer.
    Rank,
    /// Number of the row's group of peers, counted from 1.
    DenseRank,
    /// Relative rank from 0 to 1: (rank - 1) / (rows - 1), as `float8`.
    PercentRank,
    /// Cumulative distribution: the fraction of rows up to the last peer, as `float8`.
    CumeDist,
    /// Number of the row's bucket, counted from 1, of so many buckets of about equal size.
    Ntile(i64),
    /// `lag` and `lead`: the value of the row `before` rows earlier, or later if that is negative. If there is no such
    /// row, the value of `otherwise`, a column of one row, else NULL.
    Shifted { column: usize, before: i64, otherwise: Option<Column> },
    /// `first_value`: the value of the frame's first row.
    First { column: usize, frame: Frame },
    /// `last_value`: the value of the frame's last row.
    Last { column: usize, frame: Frame },
    /// `nth_value`: the value of the frame's row with this number, counted from 1; NULL if the frame has fewer rows.
    Nth { column: usize, number: u64, frame: Frame },
    /// Aggregate over the frame's rows.
    Kept { kept: Kept, column: Option<usize>, frame: Frame },
}
