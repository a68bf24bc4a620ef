//! A scan divided among several processes: each reads some of its parts.

use std::sync::{Arc, OnceLock};

use shards::SEGMENT_ROWS;
use types::ShardId;

use crate::by_key::FreshRows;
use crate::exec::ShardScanExec;
use crate::parts::{Part, Parts};
use crate::scan::{Scan, ScanShard};

/// The place of a part in its shard, by which its owner is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartKey {
    pub shard: ShardId,
    /// The row group's number in the shard.
    pub row_group: usize,
    /// The number of the part's first row in the row group.
    pub row: usize,
}

impl PartKey {
    /// Which piece of its shard it lies in, as workers own these: the same however a scan is divided, as long as its parts begin where pieces do.
    #[must_use]
    pub fn piece(&self) -> u32 {
        let number = self.row_group.wrapping_mul(1 << 12).wrapping_add(self.row / SEGMENT_ROWS);
        u32::try_from(number & 0xffff_ffff).unwrap_or_default()
    }
}

impl ShardScanExec {
    /// The places of its parts in their order; `None` for fresh rows, which nobody owns.
    pub fn part_keys(&self) -> Vec<Option<PartKey>> {
        let key = |part: &Part| match part {
            Part::Settled { shard, row_group, rows } => {
                let shard = self.scan.shards[*shard].meta.id;
                Some(PartKey { shard, row_group: *row_group, row: rows.start })
            }
            Part::Fresh(_) => None,
        };
        self.parts.iter().map(key).collect()
    }

    /// Keeps some parts, by their numbers, and their shards alone, for the process `home`.
    pub fn only(&self, numbers: &[usize], home: &str) -> Self {
        let mut shards: Vec<ScanShard> = Vec::new();
        let mut places = vec![None; self.scan.shards.len()];
        let all: Vec<&Part> = self.parts.iter().collect();
        let part = |number: &usize| match all[*number] {
            Part::Settled { shard, row_group, rows } => {
                let place = *places[*shard].get_or_insert_with(|| {
                    shards.push(self.scan.shards[*shard].clone());
                    shards.len() - 1
                });
                Part::Settled { shard: place, row_group: *row_group, rows: rows.clone() }
            }
            Part::Fresh(rows) => Part::Fresh(rows.clone()),
        };
        let parts: Parts = numbers.iter().map(part).collect();
        let reads_fresh = parts.iter().any(|part| matches!(part, Part::Fresh(_)));
        let fresh = if reads_fresh { self.scan.fresh().to_vec() } else { Vec::new() };
        self.with_shards(shards, parts, fresh, home)
    }

    /// Replaces its shards, parts and fresh rows, for the process `home`.
    pub(super) fn with_shards(&self, shards: Vec<ScanShard>, parts: Parts, fresh: FreshRows, home: &str) -> Self {
        let scan = Arc::new(self.scan.with_shards(shards, fresh));
        let scan = Self::new(scan, parts, self.partitions(), self.row_limit());
        scan.with_dynamic(self.dynamic().to_vec()).at(home)
    }
}

impl Scan {
    /// Replaces its shards and fresh rows.
    fn with_shards(&self, shards: Vec<ScanShard>, fresh: FreshRows) -> Self {
        Self {
            objects: self.objects.clone(),
            opened: Arc::clone(&self.opened),
            blocks: self.blocks.clone(),
            fragments: Arc::clone(&self.fragments),
            table: Arc::clone(&self.table),
            columns: Arc::clone(&self.columns),
            table_columns: Arc::clone(&self.table_columns),
            predicates: self.predicates.clone(),
            // Those that others read are not left out.
            shard_count: self.shard_count - self.shards.len() + shards.len(),
            shards,
            bucketed_by: self.bucketed_by,
            rows: Arc::clone(&self.rows),
            keyed: None,
            fresh_rows_max: fresh.len(),
            fresh: OnceLock::from(fresh),
            statistics: self.statistics.clone().to_inexact(),
            _pin: None,
        }
    }
}
