//! Window frames: the range of rows that a function sees.

use std::ops::Range;

use super::compute_columns::WindowShare;
use super::range_offset::{RangeCursor, RangeOffset};
use crate::{Bitmap, Result};

/// Frame clause: its mode and both bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub mode: FrameMode,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// Frame mode: the unit of a frame's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameMode {
    /// ROWS mode.
    Rows,
    /// RANGE and GROUPS modes: the current row means all its peers, and [`FrameBound::Offset`] counts groups of peers.
    Peers,
}

/// Bound of a frame: its start or its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FrameBound {
    /// UNBOUNDED PRECEDING as a start, UNBOUNDED FOLLOWING as an end.
    Unbounded,
    /// So many rows, or groups of peers, after the current one; before it if negative. 0 is CURRENT ROW.
    Offset(i64),
    /// RANGE mode with an offset: rows whose ORDER BY key is within a distance of the current row's.
    RangeOffset(RangeOffset),
}

impl Frame {
    /// Returns the frame with the column indices of its bounds mapped by `place`.
    #[must_use]
    pub fn map_columns(mut self, place: impl Fn(usize) -> usize) -> Self {
        for edge in [&mut self.start, &mut self.end] {
            if let FrameBound::RangeOffset(near) = edge {
                near.key.column = place(near.key.column);
            }
        }
        self
    }
}

/// Cursor over the frames of a partition's rows, in order. Both bounds only move forward.
pub(super) struct Frames<'a> {
    frame: Frame,
    partition: Range<usize>,
    peer_starts: &'a Bitmap,
    peers: Range<usize>,
    groups: Option<PeerGroups>,
    start: Option<RangeCursor<'a>>,
    end: Option<RangeCursor<'a>>,
}

/// Starts of a partition's groups of peers, and the index of the current row's group.
struct PeerGroups {
    starts: Vec<usize>,
    current: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(frame: Frame, partition: Range<usize>, share: &'a WindowShare<'a>) -> Result<Self> {
        let peer_starts = share.peer_starts;
        let peers = partition.start..partition.start;
        let is_group = |edge: FrameBound| matches!(edge, FrameBound::Offset(distance) if distance != 0);
        let counts_groups = frame.mode == FrameMode::Peers && (is_group(frame.start) || is_group(frame.end));
        let groups = counts_groups.then(|| {
            let is_start = |row: &usize| *row == partition.start || peer_starts.get(*row);
            PeerGroups { starts: partition.clone().filter(is_start).collect(), current: 0 }
        });
        let nearby = |edge: FrameBound| match edge {
            FrameBound::RangeOffset(near) => RangeCursor::new(near, share, partition.clone()).map(Some),
            _ => Ok(None),
        };
        let (start, end) = (nearby(frame.start)?, nearby(frame.end)?);
        Ok(Self { frame, partition, peer_starts, peers, groups, start, end })
    }

    /// Returns the frame of `row`. Must be called for the rows of the partition in order. An empty frame is an empty
    /// range at the position of its start.
    pub(super) fn frame_of(&mut self, row: usize) -> Result<Range<usize>> {
        if self.frame.mode == FrameMode::Peers && self.peers.end <= row {
            let end = (row + 1..self.partition.end).find(|next| self.peer_starts.get(*next));
            self.peers = row..end.unwrap_or(self.partition.end);
            if let Some(groups) = &mut self.groups {
                groups.current += usize::from(row != self.partition.start);
            }
        }
        let Range { start: first, end: last } = self.partition;
        let at = |from: usize, rows: i64| add_offset(from, rows).clamp(first, last);
        let start = match (self.frame.start, self.frame.mode) {
            (FrameBound::Unbounded, _) => first,
            (FrameBound::Offset(0), FrameMode::Peers) => self.peers.start,
            (FrameBound::Offset(groups), FrameMode::Peers) => self.peer_group_start(groups, 0),
            (FrameBound::Offset(rows), FrameMode::Rows) => at(row, rows),
            (FrameBound::RangeOffset(_), _) => self.start.as_mut().map_or(Ok(first), |nearby| nearby.start(row))?,
        };
        let end = match (self.frame.end, self.frame.mode) {
            (FrameBound::Unbounded, _) => last,
            (FrameBound::Offset(0), FrameMode::Peers) => self.peers.end,
            (FrameBound::Offset(groups), FrameMode::Peers) => self.peer_group_start(groups, 1),
            (FrameBound::Offset(rows), FrameMode::Rows) if rows < 0 && row - first < rows.unsigned_abs() as usize => {
                first
            }
            (FrameBound::Offset(rows), FrameMode::Rows) => at(row, rows.saturating_add(1)),
            (FrameBound::RangeOffset(_), _) => self.end.as_mut().map_or(Ok(last), |nearby| nearby.end(row))?,
        };
        Ok(start..end.max(start))
    }

    /// Returns the start of the group of peers that is `distance` plus `more` groups after the current row's, clamped
    /// to the partition.
    fn peer_group_start(&self, distance: i64, more: usize) -> usize {
        let Some(groups) = &self.groups else { return self.partition.start };
        let is_before = distance < 0 && groups.current < add_offset(0, distance.saturating_neg());
        let place = if is_before { 0 } else { add_offset(groups.current, distance).saturating_add(more) };
        groups.starts.get(place).copied().unwrap_or(self.partition.end)
    }
}

/// Adds an offset to a position; saturates at 0.
fn add_offset(from: usize, by: i64) -> usize {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if by < 0 { from.saturating_sub(distance) } else { from.saturating_add(distance) }
}
