//! Which rows a frame has.

use std::ops::Range;

use super::compute::Share;
use super::distance::{Near, Nearby};
use crate::{Bits, Result};

/// The rows around a row that a function is of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub units: Units,
    pub start: Edge,
    pub end: Edge,
}

/// What a frame's edges are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Rows,
    /// The current row stands for all its peers; distances are of groups of peers.
    Peers,
}

/// Where a frame starts or ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Edge {
    /// With the partition.
    Partition,
    /// So many rows, or groups of peers, after the current one, before where that is negative.
    At(i64),
    /// With the rows whose key is no further away.
    Near(Near),
}

impl Frame {
    /// With the columns of its edges at other places.
    #[must_use]
    pub fn moved(mut self, place: impl Fn(usize) -> usize) -> Self {
        for edge in [&mut self.start, &mut self.end] {
            if let Edge::Near(near) = edge {
                near.key.column = place(near.key.column);
            }
        }
        self
    }
}

/// Walks through the frames of a partition's rows. Both edges never go back.
pub(super) struct Frames<'a> {
    frame: Frame,
    partition: Range<usize>,
    peer_starts: &'a Bits,
    peers: Range<usize>,
    groups: Option<Groups>,
    start: Option<Nearby<'a>>,
    end: Option<Nearby<'a>>,
}

/// Where the groups of peers of a partition begin, and the one that was looked at last.
struct Groups {
    starts: Vec<usize>,
    current: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(frame: Frame, partition: Range<usize>, share: &'a Share<'a>) -> Result<Self> {
        let peer_starts = share.peer_starts;
        let peers = partition.start..partition.start;
        let is_group = |edge: Edge| matches!(edge, Edge::At(distance) if distance != 0);
        let counts_groups = frame.units == Units::Peers && (is_group(frame.start) || is_group(frame.end));
        let groups = counts_groups.then(|| {
            let is_start = |row: &usize| *row == partition.start || peer_starts.get(*row);
            Groups { starts: partition.clone().filter(is_start).collect(), current: 0 }
        });
        let nearby = |edge: Edge| match edge {
            Edge::Near(near) => Nearby::new(near, share, partition.clone()).map(Some),
            _ => Ok(None),
        };
        let (start, end) = (nearby(frame.start)?, nearby(frame.end)?);
        Ok(Self { frame, partition, peer_starts, peers, groups, start, end })
    }

    /// The frame of the partition's next row, all rows before having been asked for. Empty ones lie where they would be.
    pub(super) fn of(&mut self, row: usize) -> Result<Range<usize>> {
        if self.frame.units == Units::Peers && self.peers.end <= row {
            let end = (row + 1..self.partition.end).find(|next| self.peer_starts.get(*next));
            self.peers = row..end.unwrap_or(self.partition.end);
            if let Some(groups) = &mut self.groups {
                groups.current += usize::from(row != self.partition.start);
            }
        }
        let Range { start: first, end: last } = self.partition;
        let at = |from: usize, rows: i64| shifted(from, rows).clamp(first, last);
        let start = match (self.frame.start, self.frame.units) {
            (Edge::Partition, _) => first,
            (Edge::At(0), Units::Peers) => self.peers.start,
            (Edge::At(groups), Units::Peers) => self.group_start(groups, 0),
            (Edge::At(rows), Units::Rows) => at(row, rows),
            (Edge::Near(_), _) => self.start.as_mut().map_or(Ok(first), |nearby| nearby.start(row))?,
        };
        let end = match (self.frame.end, self.frame.units) {
            (Edge::Partition, _) => last,
            (Edge::At(0), Units::Peers) => self.peers.end,
            (Edge::At(groups), Units::Peers) => self.group_start(groups, 1),
            (Edge::At(rows), Units::Rows) if rows < 0 && row - first < rows.unsigned_abs() as usize => first,
            (Edge::At(rows), Units::Rows) => at(row, rows.saturating_add(1)),
            (Edge::Near(_), _) => self.end.as_mut().map_or(Ok(last), |nearby| nearby.end(row))?,
        };
        Ok(start..end.max(start))
    }

    /// Where the group begins that comes so many after the current row's, and some more.
    fn group_start(&self, distance: i64, more: usize) -> usize {
        let Some(groups) = &self.groups else { return self.partition.start };
        let is_before = distance < 0 && groups.current < shifted(0, distance.saturating_neg());
        let place = if is_before { 0 } else { shifted(groups.current, distance).saturating_add(more) };
        groups.starts.get(place).copied().unwrap_or(self.partition.end)
    }
}

/// A place so much further on, no less than 0.
fn shifted(from: usize, by: i64) -> usize {
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    if by < 0 { from.saturating_sub(distance) } else { from.saturating_add(distance) }
}
