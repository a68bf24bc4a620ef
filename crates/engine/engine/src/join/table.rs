//! The build side as one table that all workers read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::filter::KeyFilter;
use super::groups::Groups;
use super::index::Index;
use super::marks::Marks;
use super::not_in::NotIn;
use super::words::Words;
use super::{Build, JoinKind, JoinSpec, NO_WORD};
use crate::vector::concat;
use crate::{Batch, Column, Error, Form, NONE, Result, unless_stopped};

/// A row's word, its places in the order and the groups, and its share of an index where no word comes twice.
const ROOM_PER_ROW: usize = 8 + 8 + 32;

/// A finished build side.
#[derive(Debug)]
pub struct JoinTable {
    pub(super) spec: Arc<JoinSpec>,
    /// What no other table of this process has.
    pub(super) id: u64,
    pub(super) rows: usize,
    /// The columns that output and condition need.
    pub(super) columns: Vec<Option<Column>>,
    pub(super) words: Words,
    pub(super) index: Index,
    pub(super) groups: Groups,
    /// The build rows that have found a match, of joins that give build rows afterwards.
    pub(super) marks: Option<Marks>,
    /// Of [`JoinKind::LeftNotIn`].
    pub(super) not_in: Option<NotIn>,
    /// Whether rows that find nothing may be left out before they come here.
    pub(super) has_filters: bool,
    filters: Vec<Option<Arc<KeyFilter>>>,
}

impl JoinTable {
    /// Makes the table of what the workers have collected. What probe rows must fulfil is told by at most so many bytes for each key;
    /// nobody asks where these are none.
    ///
    /// # Errors
    /// Where the parts of `spec` do not fit each other, or for more rows than a table can have; [`Error::Stopped`] once `stop` is set.
    pub fn finish(
        spec: Arc<JoinSpec>,
        mut builds: Vec<Build>,
        filter_bytes_max: usize,
        stop: &AtomicBool,
    ) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        spec.check()?;
        let rows = builds.iter().map(Build::rows).sum();
        if Self::can_have(rows) {
            let columns = columns(&spec, &mut builds, stop)?;
            drop(builds);
            Self::of_columns(spec, rows, columns, filter_bytes_max, stop, NEXT.fetch_add(1, Ordering::Relaxed))
        } else {
            Err(Error::Memory("the build side of a join"))
        }
    }

    /// What [`JoinTable::finish`] may need, roughly, beside what has been collected: a column lies there twice, its pieces and the whole,
    /// while the rows' words, order and index are made.
    #[must_use]
    pub fn room_bytes<'a>(builds: impl Iterator<Item = &'a Build>) -> usize {
        let (mut rows, mut columns, mut collected) = (0, 1, 0);
        for build in builds {
            rows += build.rows();
            columns = build.columns().max(columns);
            collected += build.memory_bytes();
        }
        collected.div_ceil(columns) + rows * ROOM_PER_ROW
    }

    /// What a table of `build` and one more batch may need, with what these take.
    #[must_use]
    pub fn room_bytes_with(build: &Build, batch: &Batch) -> usize {
        let bytes = build.memory_bytes() + batch.bytes_copied();
        bytes + bytes.div_ceil(batch.columns.len().max(1)) + (build.rows() + batch.rows) * ROOM_PER_ROW
    }

    /// Whether a table can have so many rows.
    #[must_use]
    pub fn can_have(rows: usize) -> bool {
        u32::try_from(rows).is_ok_and(|rows| rows < NONE - 2)
    }

    fn of_columns(
        spec: Arc<JoinSpec>,
        rows: usize,
        mut columns: Vec<Option<Column>>,
        filter_bytes_max: usize,
        stop: &AtomicBool,
        id: u64,
    ) -> Result<Self> {
        let keys = spec.keys.iter().map(|(build, _)| columns[*build].as_ref().ok_or(Error::Form("a join's key")));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let (words, of_rows) = Words::learn(&keys, rows, spec.nulls_are_equal, stop)?;
        let index = Index::new(&of_rows, words.size(), spec.asks_existence(), stop)?;
        let (groups, order) = Groups::new(&of_rows, &index, spec.asks_existence(), stop)?;
        let is_not_in = spec.kind == JoinKind::LeftNotIn;
        // What becomes of a build row whose key is NULL depends on whether there are probe rows, whatever their keys.
        let has_filters =
            filter_bytes_max != 0 && !spec.kind.keeps_probe_rows() && !(is_not_in && of_rows.contains(&NO_WORD));
        let filter = |(position, key): (usize, &&Column)| {
            let encoding = words.encoding(position).filter(|_| has_filters)?;
            let known = index.bits().filter(|_| keys.len() == 1 && encoding.least().is_some());
            let filter = KeyFilter::new(
                key,
                |row| of_rows[row] != NO_WORD,
                known,
                encoding.has_null() || is_not_in,
                filter_bytes_max as u64 * 8,
            );
            filter.map(Arc::new)
        };
        let filters = keys.iter().enumerate().map(filter).collect();
        for (position, column) in columns.iter_mut().enumerate() {
            unless_stopped(stop)?;
            if !spec.gives_build(position) {
                *column = None;
            } else if let (Some(column), Some(order)) = (column, &order) {
                *column = column.take(order)?;
            }
        }
        let marks = spec.kind.gives_rest().then(|| Marks::new(rows));
        let not_in = is_not_in.then(|| NotIn::new(&of_rows, order.as_deref()));
        Ok(Self { spec, id, rows, columns, words, index, groups, marks, not_in, has_filters, filters })
    }

    /// How many rows the build side has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Says that there are probe rows, none of them with a NULL for a key, though they may never come to this table: it is of a part of the
    /// build side.
    pub fn see_rows_elsewhere(&self) {
        if let Some(not_in) = &self.not_in {
            not_in.see_rows();
        }
    }

    /// What the table takes in memory, roughly.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().flatten().map(Column::memory_bytes).sum();
        let filters: usize = self.filters.iter().flatten().map(|filter| filter.memory_bytes()).sum();
        let marks = self.marks.as_ref().map_or(0, |marks| marks.words() * 8);
        columns + filters + marks + self.words.memory_bytes() + self.index.memory_bytes() + self.groups.memory_bytes()
    }

    /// What probe rows must fulfil on a key to find anything; `None` where rows that find nothing are given too, and for keys that are
    /// no integers.
    #[must_use]
    pub fn key_filter(&self, key: usize) -> Option<Arc<KeyFilter>> {
        self.filters.get(key).cloned().flatten()
    }

    /// A column of the build side.
    pub(super) fn column(&self, position: usize) -> Result<&Column> {
        let column = self.columns.get(position).and_then(Option::as_ref);
        column.ok_or(Error::Form("a column of a join's build side"))
    }
}

/// The columns that the join uses, each made of its pieces before the next one's, which takes the least memory.
fn columns(spec: &JoinSpec, builds: &mut [Build], stop: &AtomicBool) -> Result<Vec<Option<Column>>> {
    let column = |(position, form): (usize, &Form)| {
        unless_stopped(stop)?;
        if !spec.uses_build(position) {
            return Ok(None);
        }
        let pieces = builds.iter_mut().flat_map(|build| build.take_column(position)).collect();
        concat(pieces, *form).map(Some)
    };
    spec.build_forms.iter().enumerate().map(column).collect()
}
