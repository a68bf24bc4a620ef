//! Scans divided among processes by parts: each process reads some of them.

use std::sync::{Arc, OnceLock};

use shards::FETCH_ROWS_MIN;
use types::ShardId;

use crate::scan::{Scan, ScanShard};
use crate::scan_parts::{Part, Parts};
use crate::shard_scan_exec::ShardScanExec;
use crate::unflushed_by_index::UnflushedRows;

/// Location of a part in its shard, which determines the part's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartLocation {
    pub shard: ShardId,
    /// Number of the row group in the shard.
    pub row_group: usize,
    /// Number of the part's first row in the row group.
    pub row: usize,
}

impl PartLocation {
    /// Returns the number of the ownership unit that the part begins in. It does not depend on how a scan is divided,
    /// as long as its parts begin at segment boundaries.
    #[must_use]
    pub fn ownership_unit(&self) -> u32 {
        let number = self.row_group.wrapping_mul(1 << 12).wrapping_add(self.row / FETCH_ROWS_MIN);
        u32::try_from(number & 0xffff_ffff).unwrap_or_default()
    }
}

impl ShardScanExec {
    /// Returns the locations of its parts, in order; `None` for unflushed rows, which no worker owns.
    pub fn part_locations(&self) -> Vec<Option<PartLocation>> {
        let key = |part: &Part| match part {
            Part::Flushed { shard, row_group, rows } => {
                let shard = self.scan.shards[*shard].meta.id;
                Some(PartLocation { shard, row_group: *row_group, row: rows.start })
            }
            Part::Unflushed(_) => None,
        };
        self.parts.iter().map(key).collect()
    }

    /// Returns the scan of some of the parts, by their numbers, and of their shards only, for the process `home`.
    pub fn restrict_to_parts(&self, numbers: &[usize], home: &str) -> Self {
        let mut shards: Vec<ScanShard> = Vec::new();
        let mut places = vec![None; self.scan.shards.len()];
        let all: Vec<&Part> = self.parts.iter().collect();
        let part = |number: &usize| match all[*number] {
            Part::Flushed { shard, row_group, rows } => {
                let place = *places[*shard].get_or_insert_with(|| {
                    shards.push(self.scan.shards[*shard].clone());
                    shards.len() - 1
                });
                Part::Flushed { shard: place, row_group: *row_group, rows: rows.clone() }
            }
            Part::Unflushed(rows) => Part::Unflushed(rows.clone()),
        };
        let parts: Parts = numbers.iter().map(part).collect();
        let reads_fresh = parts.iter().any(|part| matches!(part, Part::Unflushed(_)));
        let fresh = if reads_fresh { self.scan.unflushed().to_vec() } else { Vec::new() };
        self.with_shards(shards, parts, fresh, home)
    }

    /// Replaces shards, parts and unflushed rows, for the process `home`.
    pub(super) fn with_shards(&self, shards: Vec<ScanShard>, parts: Parts, fresh: UnflushedRows, home: &str) -> Self {
        let scan = Arc::new(self.scan.with_shards(shards, fresh));
        let scan = Self::new(scan, parts, self.partitions(), self.row_limit());
        scan.with_dynamic_filters(self.dynamic_filters().to_vec()).with_reader_process(home)
    }
}

impl Scan {
    /// Replaces shards and unflushed rows.
    fn with_shards(&self, shards: Vec<ScanShard>, fresh: UnflushedRows) -> Self {
        Self {
            objects: self.objects.clone(),
            opened: Arc::clone(&self.opened),
            blocks: self.blocks.clone(),
            fragments: Arc::clone(&self.fragments),
            table: Arc::clone(&self.table),
            columns: Arc::clone(&self.columns),
            table_columns: Arc::clone(&self.table_columns),
            predicates: self.predicates.clone(),
            // Shards that other processes read do not count as pruned.
            shard_count: self.shard_count - self.shards.len() + shards.len(),
            shards,
            bucketed_by: self.bucketed_by,
            rows: Arc::clone(&self.rows),
            unflushed_range: None,
            unflushed_rows_max: fresh.len(),
            unflushed: OnceLock::from(fresh),
            statistics: self.statistics.clone().to_inexact(),
            _pin: None,
        }
    }
}
