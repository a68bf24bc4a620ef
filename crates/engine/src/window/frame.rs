//! Which rows a frame has.

use std::ops::Range;

use crate::Bits;

/// The rows around a row that a function is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    pub units: Units,
    pub start: Edge,
    pub end: Edge,
}

/// What a frame's edges are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Rows,
    /// The current row stands for all its peers; there are no distances.
    Peers,
}

/// Where a frame starts or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// With the partition.
    Partition,
    /// So many rows after the current one, before where that is negative.
    At(i64),
}

/// Walks through the frames of a partition's rows. Both edges never go back.
pub(super) struct Frames<'a> {
    frame: Frame,
    partition: Range<usize>,
    peer_starts: &'a Bits,
    peers: Range<usize>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(frame: Frame, partition: Range<usize>, peer_starts: &'a Bits) -> Self {
        let peers = partition.start..partition.start;
        Self { frame, partition, peer_starts, peers }
    }

    /// The frame of the partition's next row, all rows before having been asked for. Empty ones lie where they would be.
    pub(super) fn of(&mut self, row: usize) -> Range<usize> {
        if self.frame.units == Units::Peers && self.peers.end <= row {
            let end = (row + 1..self.partition.end).find(|next| self.peer_starts.get(*next));
            self.peers = row..end.unwrap_or(self.partition.end);
        }
        let Range { start: first, end: last } = self.partition;
        let at = |from: usize, rows: i64| {
            let distance = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
            let place = if rows < 0 { from.saturating_sub(distance) } else { from.saturating_add(distance) };
            place.clamp(first, last)
        };
        let start = match (self.frame.start, self.frame.units) {
            (Edge::Partition, _) => first,
            (Edge::At(_), Units::Peers) => self.peers.start,
            (Edge::At(rows), Units::Rows) => at(row, rows),
        };
        let end = match (self.frame.end, self.frame.units) {
            (Edge::Partition, _) => last,
            (Edge::At(_), Units::Peers) => self.peers.end,
            (Edge::At(rows), Units::Rows) if rows < 0 && row - first < rows.unsigned_abs() as usize => first,
            (Edge::At(rows), Units::Rows) => at(row, rows.saturating_add(1)),
        };
        start..end.max(start)
    }
}
