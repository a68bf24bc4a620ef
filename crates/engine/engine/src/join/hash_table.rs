//! Finished build side, shared by all probing workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::build_rows_by_key::BuildRowsByKey;
use super::key_index::KeyIndex;
use super::key_packing::KeyPacking;
use super::match_bitmap::MatchBitmap;
use super::not_in::NotInState;
use super::runtime_filter::KeyFilter;
use super::{BuildCollector, JoinKind, JoinSpec, NO_KEY_CODE};
use crate::vector::concat;
use crate::{Batch, Column, Error, NONE, PhysicalType, Result, check_stopped};

/// Bytes per row needed while the table is built: key code, positions in the order and in the groups, and the share
/// of an index of unique keys.
const BUILD_BYTES_PER_ROW: usize = 8 + 8 + 32;

/// Hash table of a join's finished build side.
#[derive(Debug)]
pub struct JoinHashTable {
    pub(super) spec: Arc<JoinSpec>,
    /// Id that is unique among the tables of this process.
    pub(super) id: u64,
    pub(super) rows: usize,
    /// Build columns needed by the output or the residual condition; rows of a group are adjacent.
    pub(super) columns: Vec<Option<Column>>,
    pub(super) key_packing: KeyPacking,
    pub(super) index: KeyIndex,
    pub(super) groups: BuildRowsByKey,
    /// Build rows that have found a match, for joins that output build rows after probing.
    pub(super) matched_rows: Option<MatchBitmap>,
    /// State of a NOT IN join ([`JoinKind::LeftNotIn`]).
    pub(super) not_in: Option<NotInState>,
    /// Whether scans may drop probe rows that cannot find a match.
    pub(super) has_filters: bool,
    /// Runtime filter of each key, if it has one.
    filters: Vec<Option<Arc<KeyFilter>>>,
}

impl JoinHashTable {
    /// Builds the hash table from the rows that the workers have collected. Each key's runtime filter takes at most
    /// `filter_bytes_max` bytes; 0 builds none.
    ///
    /// # Errors
    /// Returns [`Error::Internal`] for an inconsistent `spec`, [`Error::OutOfMemory`] for more rows than a table can
    /// have, and [`Error::Stopped`] once `stop` is set.
    pub fn finish(
        spec: Arc<JoinSpec>,
        mut builds: Vec<BuildCollector>,
        filter_bytes_max: usize,
        stop: &AtomicBool,
    ) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        spec.check()?;
        let rows = builds.iter().map(BuildCollector::row_count).sum();
        if Self::can_hold_rows(rows) {
            let columns = concat_columns(&spec, &mut builds, stop)?;
            drop(builds);
            Self::from_columns(spec, rows, columns, filter_bytes_max, stop, NEXT.fetch_add(1, Ordering::Relaxed))
        } else {
            Err(Error::OutOfMemory("the build side of a join"))
        }
    }

    /// Estimates the bytes that [`JoinHashTable::finish`] needs in addition to the collected rows: one column exists
    /// twice, in pieces and concatenated, while key codes, order and index are built.
    #[must_use]
    pub fn estimate_build_bytes<'a>(builds: impl Iterator<Item = &'a BuildCollector>) -> usize {
        let (mut rows, mut columns, mut collected) = (0, 1, 0);
        for build in builds {
            rows += build.row_count();
            columns = build.column_count().max(columns);
            collected += build.memory_bytes();
        }
        collected.div_ceil(columns) + rows * BUILD_BYTES_PER_ROW
    }

    /// Estimates the bytes of a table built from `build` and one more batch, including the rows themselves.
    #[must_use]
    pub fn estimate_build_bytes_with(build: &BuildCollector, batch: &Batch) -> usize {
        let bytes = build.memory_bytes() + batch.copied_bytes();
        bytes + bytes.div_ceil(batch.columns.len().max(1)) + (build.row_count() + batch.rows) * BUILD_BYTES_PER_ROW
    }

    /// Returns whether a table can have this many rows.
    #[must_use]
    pub fn can_hold_rows(rows: usize) -> bool {
        u32::try_from(rows).is_ok_and(|rows| rows < NONE - 2)
    }

    /// Builds the hash table from concatenated columns.
    fn from_columns(
        spec: Arc<JoinSpec>,
        rows: usize,
        mut columns: Vec<Option<Column>>,
        filter_bytes_max: usize,
        stop: &AtomicBool,
        id: u64,
    ) -> Result<Self> {
        let keys = spec.keys.iter().map(|(build, _)| {
            columns[*build].as_ref().ok_or(Error::Internal("a key column of a join's build side was not collected"))
        });
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let (words, of_rows) = KeyPacking::from_build_keys(&keys, rows, spec.nulls_are_equal, stop)?;
        let index = KeyIndex::new(&of_rows, words.size(), spec.needs_existence_only(), stop)?;
        let (groups, order) = BuildRowsByKey::new(&of_rows, &index, spec.needs_existence_only(), stop)?;
        let is_not_in = spec.kind == JoinKind::LeftNotIn;
        // A build row with a NULL key is returned only if there are no probe rows at all, so every probe row must
        // arrive.
        let has_filters = filter_bytes_max != 0
            && !spec.kind.outputs_unmatched_probe_rows()
            && !(is_not_in && of_rows.contains(&NO_KEY_CODE));
        let filter = |(position, key): (usize, &&Column)| {
            let encoding = words.encoding(position).filter(|_| has_filters)?;
            let known = index.bits().filter(|_| keys.len() == 1 && encoding.least().is_some());
            let filter = KeyFilter::new(
                key,
                |row| of_rows[row] != NO_KEY_CODE,
                known,
                encoding.has_null() || is_not_in,
                filter_bytes_max as u64 * 8,
            );
            filter.map(Arc::new)
        };
        let filters = keys.iter().enumerate().map(filter).collect();
        for (position, column) in columns.iter_mut().enumerate() {
            check_stopped(stop)?;
            if !spec.outputs_build_column(position) {
                *column = None;
            } else if let (Some(column), Some(order)) = (column, &order) {
                *column = column.take(order)?;
            }
        }
        let marks = spec.kind.outputs_build_rows().then(|| MatchBitmap::new(rows));
        let not_in = is_not_in.then(|| NotInState::new(&of_rows, order.as_deref()));
        Ok(Self {
            spec,
            id,
            rows,
            columns,
            key_packing: words,
            index,
            groups,
            matched_rows: marks,
            not_in,
            has_filters,
            filters,
        })
    }

    /// Returns the number of build rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Records that probe rows without NULL keys exist that may never reach this table, because it holds only a
    /// partition of the build side.
    pub fn record_probe_rows_elsewhere(&self) {
        if let Some(not_in) = &self.not_in {
            not_in.record_rows();
        }
    }

    /// Returns the approximate bytes of the table.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().flatten().map(Column::memory_bytes).sum();
        let filters: usize = self.filters.iter().flatten().map(|filter| filter.memory_bytes()).sum();
        let marks = self.matched_rows.as_ref().map_or(0, |marks| marks.word_count() * 8);
        columns
            + filters
            + marks
            + self.key_packing.memory_bytes()
            + self.index.memory_bytes()
            + self.groups.memory_bytes()
    }

    /// Returns the runtime filter that a key of the probe rows must pass to find a match. Returns `None` if the join
    /// outputs probe rows without a match, and for keys that are not integers.
    #[must_use]
    pub fn key_filter(&self, key: usize) -> Option<Arc<KeyFilter>> {
        self.filters.get(key).cloned().flatten()
    }

    /// Returns a column of the build side.
    pub(super) fn column(&self, position: usize) -> Result<&Column> {
        let column = self.columns.get(position).and_then(Option::as_ref);
        column.ok_or(Error::Internal("a build column was requested that the hash table of a join does not store"))
    }
}

/// Concatenates the columns that the join uses, one after the other, so that only one column exists twice at any
/// time.
fn concat_columns(spec: &JoinSpec, builds: &mut [BuildCollector], stop: &AtomicBool) -> Result<Vec<Option<Column>>> {
    let column = |(position, form): (usize, &PhysicalType)| {
        check_stopped(stop)?;
        if !spec.uses_build_column(position) {
            return Ok(None);
        }
        let pieces = builds.iter_mut().flat_map(|build| build.take_column(position)).collect();
        concat(pieces, *form).map(Some)
    };
    spec.build_types.iter().enumerate().map(column).collect()
}
