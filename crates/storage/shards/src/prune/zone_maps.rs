//! Zone maps of a file, from its footer and page indexes.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::errors::ParquetError;
use types::{ColumnId, SqlType};

use super::{find_leaf, find_root};
use crate::external::is_ordered;
use crate::predicate::ZoneMapEntry;
use crate::reader::{FileKind, OpenFile, catch_decoder_panic};
use crate::{Datum, Error, Result, Test};

/// Zone maps of one column in a row group.
pub(super) struct ColumnZoneMap {
    /// Entry of the row group.
    row_group: OwnedZoneMapEntry,
    /// Rows and entry of each page.
    pages: Vec<(Range<usize>, OwnedZoneMapEntry)>,
}

/// Owned zone-map entry.
pub(crate) struct OwnedZoneMapEntry {
    pub(crate) rows: u64,
    /// Number of NULLs; `None` if unknown, like the bounds.
    pub(crate) nulls: Option<u64>,
    pub(crate) min: Option<Datum>,
    pub(crate) max: Option<Datum>,
}

/// Reads the zone maps of a column in a row group; `None` if the file lacks the column or has no statistics of it.
pub(super) fn read_zones(file: &OpenFile, row_group: usize, column: ColumnId) -> Result<Option<ColumnZoneMap>> {
    let Some(found) = FileColumnStats::find(file, column) else { return Ok(None) };
    catch_decoder_panic(|| found.zones(row_group))
        .map_err(|source| Error::Decode { object: file.meta.object.clone(), source })
}

/// Reads the zone-map entries of a column for each of the row groups; `None` if the file lacks the column or has no
/// statistics of it.
pub(crate) fn read_row_group_zones(
    file: &OpenFile,
    row_groups: &[usize],
    column: ColumnId,
) -> Result<Option<Vec<OwnedZoneMapEntry>>> {
    let Some(found) = FileColumnStats::find(file, column) else { return Ok(None) };
    catch_decoder_panic(|| found.row_groups(row_groups))
        .map_err(|source| Error::Decode { object: file.meta.object.clone(), source })
}

/// Column of a file with usable statistics.
struct FileColumnStats<'a> {
    file: &'a OpenFile,
    root: usize,
    leaf: usize,
    /// SQL type that the values of an external file are converted to.
    converted: Option<&'a SqlType>,
}

impl<'a> FileColumnStats<'a> {
    /// Looks up a column; `None` if it is missing, nested, or an interval of an external file.
    fn find(file: &'a OpenFile, column: ColumnId) -> Option<Self> {
        let (root, leaf) = (find_root(file, column)?, find_leaf(file, column)?);
        let converted = match &file.file_kind {
            FileKind::External { types } => Some(types.get(root)?.as_ref()?),
            FileKind::Shard { .. } => None,
        };
        let is_told =
            !file.metadata.schema().field(root).data_type().is_nested() && converted != Some(&SqlType::Interval);
        is_told.then_some(Self { file, root, leaf, converted })
    }

    fn converter(&self) -> Result<StatisticsConverter<'a>, ParquetError> {
        let field = self.file.metadata.schema().field(self.root);
        let converter = StatisticsConverter::from_column_index(self.leaf, field, self.file.metadata.parquet_schema())?;
        Ok(converter.with_missing_null_counts_as_zero(false))
    }

    fn row_groups(&self, row_groups: &[usize]) -> Result<Option<Vec<OwnedZoneMapEntry>>, ParquetError> {
        let (converter, metadata) = (self.converter()?, self.file.metadata.metadata());
        let groups = || row_groups.iter().map(|row_group| metadata.row_group(*row_group));
        let statistics = Statistics {
            mins: converter.row_group_mins(groups())?,
            maxes: converter.row_group_maxes(groups())?,
            nulls: converter.row_group_null_counts(groups())?,
        };
        if statistics.len() != row_groups.len() {
            return Ok(None);
        }
        let statistics = self.reliable_statistics(statistics, row_groups);
        let bounds = |(at, row_group): (usize, &usize)| {
            self.with_required_nulls(statistics.bounds(at, self.file.rows(*row_group) as u64), *row_group)
        };
        Ok(Some(row_groups.iter().enumerate().map(bounds).collect()))
    }

    fn zones(&self, row_group: usize) -> Result<Option<ColumnZoneMap>, ParquetError> {
        let groups = [row_group];
        let Some(whole) = self.row_groups(&groups)?.and_then(|mut bounds| bounds.pop()) else { return Ok(None) };
        let metadata = self.file.metadata.metadata();
        let (Some(column_index), Some(offset_index)) = (metadata.column_index(), metadata.offset_index()) else {
            return Ok(Some(ColumnZoneMap { row_group: whole, pages: Vec::new() }));
        };
        let converter = self.converter()?;
        let statistics = Statistics {
            mins: converter.data_page_mins(column_index, offset_index, &groups)?,
            maxes: converter.data_page_maxes(column_index, offset_index, &groups)?,
            nulls: converter.data_page_null_counts(column_index, offset_index, &groups)?,
        };
        let rows = self.file.page_rows(row_group, self.leaf);
        if statistics.len() != rows.len() {
            return Ok(Some(ColumnZoneMap { row_group: whole, pages: Vec::new() }));
        }
        let statistics = self.reliable_statistics(statistics, &groups);
        let pages = rows.into_iter().enumerate().map(|(page, rows)| {
            let bounds = statistics.bounds(page, rows.len() as u64);
            (rows, self.with_required_nulls(bounds, row_group))
        });
        Ok(Some(ColumnZoneMap { row_group: whole, pages: pages.collect() }))
    }

    /// Makes the statistics of an external file those of the converted values, and drops unreliable ones.
    fn reliable_statistics(&self, statistics: Statistics, row_groups: &[usize]) -> Statistics {
        let Some(wanted) = self.converted else { return statistics };
        let metadata = self.file.metadata.metadata();
        let nothing = |bounds: &ArrayRef| new_null_array(&DataType::Null, bounds.len());
        if !row_groups.iter().all(|row_group| is_ordered(metadata, *row_group, self.leaf)) {
            return Statistics { mins: nothing(&statistics.mins), maxes: nothing(&statistics.maxes), ..statistics };
        }
        // A bound that cannot be converted is dropped.
        let options = CastOptions { safe: true, ..CastOptions::default() };
        let converted = |bounds: ArrayRef| {
            if *bounds.data_type() == wanted.arrow_type() {
                return bounds;
            }
            cast_with_options(&bounds, &wanted.arrow_type(), &options).unwrap_or_else(|_| nothing(&bounds))
        };
        Statistics { mins: converted(statistics.mins), maxes: converted(statistics.maxes), nulls: statistics.nulls }
    }

    /// Sets the number of NULLs to 0 for required columns of an external file.
    fn with_required_nulls(&self, bounds: OwnedZoneMapEntry, row_group: usize) -> OwnedZoneMapEntry {
        let is_required = || {
            let chunk = self.file.metadata.metadata().row_group(row_group).column(self.leaf);
            chunk.column_descr().max_def_level() == 0
        };
        if self.converted.is_some() && is_required() { OwnedZoneMapEntry { nulls: Some(0), ..bounds } } else { bounds }
    }
}

/// Parquet statistics of several zones.
struct Statistics {
    mins: ArrayRef,
    maxes: ArrayRef,
    nulls: UInt64Array,
}

impl Statistics {
    /// Returns the number of zones that all three arrays cover.
    fn len(&self) -> usize {
        self.mins.len().min(self.maxes.len()).min(self.nulls.len())
    }

    fn bounds(&self, zone: usize, rows: u64) -> OwnedZoneMapEntry {
        // Parquet's statistics exclude NaN, the greatest float, so the maximum is no upper bound.
        let is_float = matches!(self.maxes.data_type(), DataType::Float32 | DataType::Float64);
        let is_number = |bound: &Datum| !matches!(bound, Datum::Float(value) if value.is_nan());
        OwnedZoneMapEntry {
            rows,
            nulls: self.nulls.is_valid(zone).then(|| self.nulls.value(zone)),
            min: Datum::from_array(&*self.mins, zone).filter(is_number),
            max: if is_float { None } else { Datum::from_array(&*self.maxes, zone) },
        }
    }
}

impl OwnedZoneMapEntry {
    fn zone(&self) -> ZoneMapEntry<'_> {
        // Long text and bytes may be truncated without notice, so the bounds are not exact.
        ZoneMapEntry {
            rows: self.rows,
            nulls: self.nulls,
            min: self.min.as_ref(),
            max: self.max.as_ref(),
            exact: false,
        }
    }
}

impl ColumnZoneMap {
    pub(super) fn row_group(&self) -> ZoneMapEntry<'_> {
        self.row_group.zone()
    }

    /// Returns the rows of the pages in which a row may pass; `None` if there are no page statistics.
    pub(super) fn matching_rows(&self, test: &Test) -> Option<Vec<Range<usize>>> {
        if self.pages.is_empty() {
            return None;
        }
        let passing = self.pages.iter().filter(|(rows, bounds)| !rows.is_empty() && test.may_pass(&bounds.zone()));
        Some(passing.map(|(rows, _)| rows.clone()).collect())
    }
}
