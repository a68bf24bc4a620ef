//! Window functions: values of rows that are in order, of the rows around them.
//!
//! `partition.rs` finds where partitions and peers begin, `place.rs` tells of places, `pick.rs` takes values of other rows, `total.rs` adds up
//! frames, which `frame.rs` says the bounds of, by `distance.rs` where these are of keys. A share of the partitions is computed alone; of rows that come from files, partition by
//! partition, or by parts of one (`by_partition.rs`, `part.rs`).

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

/// What is computed of rows that are sorted by partitions, and by an order within these.
#[derive(Debug, Clone)]
pub struct WindowSpec {
    /// Columns that have one value in a partition.
    pub partition_by: Vec<usize>,
    /// Columns that have one value in rows that are peers.
    pub order_by: Vec<usize>,
    /// Each gives a column.
    pub functions: Vec<WindowFunction>,
}

/// A function of a row's place, or of rows around it.
#[derive(Debug, Clone)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    /// Between 0 for the first and 1; a `float8`.
    PercentRank,
    /// The part of the rows that do not come after its peers; a `float8`.
    CumeDist,
    /// Which of so many parts of about the same size, counted from 1.
    Ntile(i64),
    /// The value of the row so far before, or after where that is negative. Where there is none, that of `otherwise`, a column of one row.
    Shifted {
        column: usize,
        before: i64,
        otherwise: Option<Column>,
    },
    /// The value of the frame's first row.
    First {
        column: usize,
        frame: Frame,
    },
    /// The value of the frame's last row.
    Last {
        column: usize,
        frame: Frame,
    },
    /// The value of the frame's row with this number, counted from 1; NULL where it has fewer.
    Nth {
        column: usize,
        number: u64,
        frame: Frame,
    },
    /// What is kept of the frame's rows.
    Kept {
        kept: Kept,
        column: Option<usize>,
        frame: Frame,
    },
}
