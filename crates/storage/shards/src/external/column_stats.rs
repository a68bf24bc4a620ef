//! Column statistics of external files, as far as their footers are reliable.

use parquet::basic::{ColumnOrder, SortOrder, Type};
use parquet::file::metadata::ParquetMetaData;
use types::ColumnId;

use crate::prune;
use crate::reader::OpenFile;
use crate::{ColumnStats, Datum, Hll, Result};

/// Merges the statistics of a column over all row groups.
pub(super) fn collect(file: &OpenFile, column: ColumnId) -> Result<ColumnStats> {
    let metadata = file.metadata.metadata();
    let groups: Vec<usize> = (0..metadata.num_row_groups()).collect();
    let zones = prune::read_row_group_zones(file, &groups, column)?;
    let mut nulls = zones.is_some().then_some(0);
    let mut bounds = (zones.is_some(), None, None);
    for zone in zones.iter().flatten().filter(|zone| 0 < zone.rows) {
        nulls = nulls.zip(zone.nulls).map(|(all, more)| all + more);
        if zone.nulls != Some(zone.rows) {
            bounds = extend_bounds(bounds, zone.min.as_ref(), zone.max.as_ref());
        }
    }
    let (is_bounded, min, max) = bounds;
    let bytes = prune::find_leaf(file, column).map_or(0, |leaf| {
        let chunks = metadata.row_groups().iter().map(|group| group.column(leaf).compressed_size());
        chunks.map(|bytes| u64::try_from(bytes).unwrap_or_default()).sum()
    });
    Ok(ColumnStats {
        column,
        nulls: nulls.unwrap_or_default(),
        nulls_guessed: nulls.is_none(),
        min: min.filter(|_| is_bounded),
        max: max.filter(|_| is_bounded),
        bounds_exact: false,
        distinct: Hll::default(),
        ascending: false,
        strictly_ascending: false,
        average_run: 1.0,
        heavy_hitters: Vec::new(),
        bytes,
    })
}

/// Merged bounds; `false` once a zone with values lacks bounds.
type MergedBounds = (bool, Option<Datum>, Option<Datum>);

/// Extends bounds by those of another zone.
fn extend_bounds((is_bounded, min, max): MergedBounds, low: Option<&Datum>, high: Option<&Datum>) -> MergedBounds {
    let (Some(low), Some(high)) = (low, high) else { return (false, None, None) };
    let min = min.filter(|known| known <= low).unwrap_or_else(|| low.clone());
    let max = max.filter(|known| high <= known).unwrap_or_else(|| high.clone());
    (is_bounded, Some(min), Some(max))
}

/// Returns true if the bounds of a column, in its row group and pages, follow the order of its values.
pub(crate) fn is_ordered(metadata: &ParquetMetaData, row_group: usize, leaf: usize) -> bool {
    let file = metadata.file_metadata();
    let descriptor = file.schema_descr().column(leaf);
    let is_number = match descriptor.physical_type() {
        // Writers disagree on the order of these.
        Type::INT96 => return false,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => false,
        _ => descriptor.sort_order() == SortOrder::SIGNED,
    };
    let order = file.column_orders().and_then(|orders| orders.get(leaf));
    let statistics = metadata.row_group(row_group).column(leaf).statistics();
    let is_old = statistics.is_some_and(parquet::file::statistics::Statistics::is_min_max_deprecated);
    // Old writers compared everything as signed.
    is_number || (!is_old && matches!(order, Some(ColumnOrder::TYPE_DEFINED_ORDER(_))))
}
