//! A file's indexes as zones.

use std::iter;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::errors::ParquetError;
use types::ColumnId;

use super::root_of;
use crate::predicate::Zone;
use crate::reader::File;
use crate::{Datum, Error, Result, Test};

/// What a file knows about one column of a row group.
pub(super) struct Zones {
    whole: Bounds,
    /// One for each page, with its rows.
    pages: Vec<(Range<usize>, Bounds)>,
}

struct Bounds {
    rows: u64,
    nulls: Option<u64>,
    min: Option<Datum>,
    max: Option<Datum>,
}

/// The zones of a column; `None` if the file lacks it or has nothing to say about it.
pub(super) fn of(file: &File, row_group: usize, column: ColumnId) -> Result<Option<Zones>> {
    let Some(root) = root_of(file, column) else { return Ok(None) };
    let field = file.metadata.schema().field(root);
    if field.data_type().is_nested() {
        return Ok(None);
    }
    read(file, row_group, root).map_err(|source| Error::Decode { object: file.meta.object.clone(), source })
}

fn read(file: &File, row_group: usize, root: usize) -> Result<Option<Zones>, ParquetError> {
    let (parquet, metadata) = (file.metadata.parquet_schema(), file.metadata.metadata());
    let Some(leaf) = (0..parquet.num_columns()).find(|leaf| parquet.get_column_root_idx(*leaf) == root) else {
        return Ok(None);
    };
    let (Some(column_index), Some(offset_index)) = (metadata.column_index(), metadata.offset_index()) else {
        return Ok(None);
    };
    let field = file.metadata.schema().field(root);
    let converter =
        StatisticsConverter::from_column_index(leaf, field, parquet)?.with_missing_null_counts_as_zero(false);

    let group = || iter::once(metadata.row_group(row_group));
    let whole = Statistics {
        mins: converter.row_group_mins(group())?,
        maxes: converter.row_group_maxes(group())?,
        nulls: converter.row_group_null_counts(group())?,
    };
    let groups = [row_group];
    let pages = Statistics {
        mins: converter.data_page_mins(column_index, offset_index, &groups)?,
        maxes: converter.data_page_maxes(column_index, offset_index, &groups)?,
        nulls: converter.data_page_null_counts(column_index, offset_index, &groups)?,
    };
    let rows = file.page_rows(row_group, leaf);
    if whole.len() != 1 || pages.len() != rows.len() {
        return Ok(None);
    }
    let page_bounds = rows.into_iter().enumerate().map(|(page, rows)| {
        let bounds = pages.bounds(page, rows.len() as u64);
        (rows, bounds)
    });
    Ok(Some(Zones { whole: whole.bounds(0, file.rows(row_group) as u64), pages: page_bounds.collect() }))
}

/// Parquet's statistics of several zones.
struct Statistics {
    mins: ArrayRef,
    maxes: ArrayRef,
    nulls: UInt64Array,
}

impl Statistics {
    /// Zones that all three speak of.
    fn len(&self) -> usize {
        self.mins.len().min(self.maxes.len()).min(self.nulls.len())
    }

    fn bounds(&self, zone: usize, rows: u64) -> Bounds {
        // Parquet's statistics leave NaN out, which is the greatest float: the maximum is no upper bound.
        let is_float = matches!(self.maxes.data_type(), DataType::Float32 | DataType::Float64);
        Bounds {
            rows,
            nulls: self.nulls.is_valid(zone).then(|| self.nulls.value(zone)),
            min: Datum::at(&*self.mins, zone),
            max: if is_float { None } else { Datum::at(&*self.maxes, zone) },
        }
    }
}

impl Bounds {
    fn zone(&self) -> Zone<'_> {
        // Long text and bytes are cut, and nobody says which.
        Zone { rows: self.rows, nulls: self.nulls, min: self.min.as_ref(), max: self.max.as_ref(), exact: false }
    }
}

impl Zones {
    pub(super) fn row_group(&self) -> Zone<'_> {
        self.whole.zone()
    }

    /// The rows of the pages in which a row may pass.
    pub(super) fn passing(&self, test: &Test) -> Vec<Range<usize>> {
        let passing = self.pages.iter().filter(|(rows, bounds)| !rows.is_empty() && test.may_pass(&bounds.zone()));
        passing.map(|(rows, _)| rows.clone()).collect()
    }
}
