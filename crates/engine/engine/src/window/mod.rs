//! Window functions over sorted rows.
//!
//! Rows in memory are divided into shares of whole partitions, which are computed in parallel. Rows that come from
//! spill files are computed partition by partition, or part by part of a long partition.
//!
//! - `partition_starts.rs`: starts of partitions and of groups of peers.
//! - `compute_columns.rs`: the result columns of a share of the partitions.
//! - `ranking.rs`: ranking functions such as `rank` and `ntile`.
//! - `value_functions.rs`: functions that return the value of another row, such as `lag` and `first_value`.
//! - `frame.rs`: window frames; `range_offset.rs`: frames in RANGE mode with an offset.
//! - `frame_aggregates.rs`: aggregates over frames.
//! - `partition_buffer.rs`: buffers sorted rows until their partition is complete; `partition_chunk.rs`: functions of
//!   one part of a long partition; `partition_aggregates.rs`: aggregates over all rows of a partition that exceeds
//!   memory.

mod compute_columns;
mod frame;
mod frame_aggregates;
mod partition_aggregates;
mod partition_buffer;
mod partition_chunk;
mod partition_starts;
mod range_offset;
mod ranking;
mod value_functions;

#[cfg(test)]
mod tests;

pub(crate) use compute_columns::{OrderedRows, compute_columns, result_type};
pub use frame::{Frame, FrameBound, FrameMode};
pub use partition_aggregates::PartitionAggregates;
pub use partition_buffer::PartitionBuffer;
pub(crate) use partition_starts::find_starts;
pub use range_offset::{Distance, RangeOffset};

use crate::Column;
use crate::aggregate::AggregateKind;

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
    /// `lag` and `lead`: the value of the row `offset` rows earlier, or later if that is negative. If there is no such
    /// row, the value of `default`, a column of one row, else NULL.
    LagLead { column: usize, offset: i64, default: Option<Column> },
    /// `first_value`: the value of the frame's first row.
    FirstValue { column: usize, frame: Frame },
    /// `last_value`: the value of the frame's last row.
    LastValue { column: usize, frame: Frame },
    /// `nth_value`: the value of the frame's row with this number, counted from 1; NULL if the frame has fewer rows.
    NthValue { column: usize, number: u64, frame: Frame },
    /// Aggregate over the frame's rows.
    Aggregate { kind: AggregateKind, column: Option<usize>, frame: Frame },
}
