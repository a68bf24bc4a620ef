//! Window functions that return the value of another row.

use std::sync::Arc;

use super::Frame;
use super::compute_columns::WindowShare;
use super::frame::Frames;
use crate::vector::concat;
use crate::{Bitmap, Column, NONE, PhysicalType, Result};

/// Computes `lag`: the value `before` rows earlier; `lead` if that is negative.
pub(super) fn lag(share: &WindowShare<'_>, column: &Column, before: i64, otherwise: Option<&Column>) -> Result<Column> {
    // The default value is appended as one more row.
    let (none, column) = match otherwise {
        Some(value) => {
            let form = PhysicalType::from_column(column);
            (row_number(column.rows()), concat(vec![column.clone(), value.clone()], form)?)
        }
        None => (NONE, column.clone()),
    };
    let mut picked = Vec::with_capacity(share.range().len());
    let distance = usize::try_from(before.unsigned_abs()).unwrap_or(usize::MAX);
    for partition in share.local_partitions() {
        picked.extend(partition.clone().map(|place| {
            let other = if before < 0 { place.checked_add(distance) } else { place.checked_sub(distance) };
            other.filter(|other| partition.contains(other)).map_or(none, |other| row_number(share.row_at(other)))
        }));
    }
    take_or_null(&column, &picked)
}

/// Row of a frame whose value is returned.
#[derive(Debug, Clone, Copy)]
pub(super) enum FrameRow {
    /// Row with this number, counted from 1.
    Number(u64),
    /// Last row.
    Last,
}

/// Returns the value of one row of each row's frame; NULL if the frame has no such row.
pub(super) fn frame_value(share: &WindowShare<'_>, column: &Column, frame: Frame, which: FrameRow) -> Result<Column> {
    let mut picked = Vec::with_capacity(share.range().len());
    for partition in share.local_partitions() {
        let mut frames = Frames::new(frame, partition.clone(), share)?;
        for place in partition {
            let mut rows = frames.frame_of(place)?;
            let row = match which {
                FrameRow::Number(which) => {
                    which.checked_sub(1).and_then(|skipped| rows.nth(usize::try_from(skipped).ok()?))
                }
                FrameRow::Last => rows.next_back(),
            };
            picked.push(row.map_or(NONE, |row| row_number(share.row_at(row))));
        }
    }
    take_or_null(column, &picked)
}

pub(super) fn row_number(row: usize) -> u32 {
    u32::try_from(row).expect("fewer than 2^32 rows are sorted")
}

/// Gathers the values of rows; NULL for [`NONE`].
pub(super) fn take_or_null(column: &Column, rows: &[u32]) -> Result<Column> {
    if !rows.contains(&NONE) {
        return column.take(rows);
    }
    let there: Vec<u32> = rows.iter().map(|row| if *row == NONE { 0 } else { *row }).collect();
    let values = column.take(&there)?;
    let is_valid = |row: usize| rows[row] != NONE && values.is_valid(row);
    let validity = Some(Arc::new(Bitmap::from_fn(rows.len(), is_valid)));
    Ok(Column { validity, ..values })
}
