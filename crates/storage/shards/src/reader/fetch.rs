//! Bytes of pages from storage, verified.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use objects::Objects;

use super::{File, Origin};
use crate::{Error, ForeignPlace, Result, page_checksum};

/// Gaps up to this are read along: a request costs more than they do.
const GAP_BYTES: u64 = 64 << 10;
/// The same where a request goes over the network.
const FAR_GAP_BYTES: u64 = 1 << 20;

/// A page: where it lies and what its bytes hash to.
struct Page {
    bytes: Range<u64>,
    checksum: u32,
}

/// Where the bytes of a file lie.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    Shard(Objects),
    Foreign(ForeignPlace),
}

impl Place {
    pub(super) fn is_far(&self) -> bool {
        match self {
            Self::Shard(objects) | Self::Foreign(ForeignPlace::Object { objects, .. }) => !objects.is_local(),
            Self::Foreign(ForeignPlace::Path { .. }) => false,
        }
    }
}

/// The bytes of each of `ranges`, all pages in them verified that have checksums.
pub(crate) async fn fetch(place: &Place, file: &File, pages: &Pages, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let merged = merged(ranges, if place.is_far() { FAR_GAP_BYTES } else { GAP_BYTES });
    let fetched = match place {
        Place::Shard(objects) => objects.get_ranges(&file.meta.object, &merged).await?,
        Place::Foreign(place) => place.get_ranges(&merged).await?,
    };
    pages.fetched.fetch_add(merged.iter().map(|range| range.end - range.start).sum(), Ordering::Relaxed);
    let slices: Vec<Bytes> = ranges
        .iter()
        .map(|range| {
            let holder = merged.partition_point(|merged| merged.end < range.end);
            let at = |offset: u64| usize::try_from(offset - merged[holder].start).expect("within what was fetched");
            fetched[holder].slice(at(range.start)..at(range.end))
        })
        .collect();
    if matches!(file.origin, Origin::Foreign { .. }) {
        return Ok(slices);
    }
    for (range, bytes) in ranges.iter().zip(&slices) {
        pages.verify(file, range, bytes)?;
    }
    Ok(slices)
}

/// The pages of a row group's columns that are read, by position.
pub(crate) struct Pages {
    pages: Vec<Page>,
    /// Counts the bytes that were fetched.
    fetched: Arc<AtomicU64>,
}

impl Pages {
    pub(crate) fn new(file: &File, row_group: usize, leaves: &[usize], fetched: &Arc<AtomicU64>) -> Self {
        let mut pages: Vec<Page> = leaves.iter().flat_map(|leaf| Self::of_chunk(file, row_group, *leaf)).collect();
        pages.sort_unstable_by_key(|page| page.bytes.start);
        Self { pages, fetched: Arc::clone(fetched) }
    }

    /// The dictionary page if there is one, then the data pages.
    fn of_chunk(file: &File, row_group: usize, leaf: usize) -> Vec<Page> {
        let metadata = file.metadata.metadata();
        let chunk = metadata.row_group(row_group).column(leaf);
        let Some(index) = metadata.offset_index() else { return Vec::new() };
        let locations = index[row_group][leaf].page_locations();
        let data = locations.iter().map(|page| {
            let start = u64::try_from(page.offset).unwrap_or_default();
            start..start.saturating_add(u64::try_from(page.compressed_page_size).unwrap_or_default())
        });
        let first = locations.first().and_then(|page| u64::try_from(page.offset).ok()).unwrap_or_default();
        let dictionary = chunk.dictionary_page_offset().and_then(|start| u64::try_from(start).ok());
        let dictionary = dictionary.map(|start| start..first.max(start));
        let Origin::Shard { checksums } = &file.origin else { return Vec::new() };
        let checksums = checksums.of_chunk(row_group, leaf);
        let ranges = dictionary.into_iter().chain(data);
        ranges.zip(checksums).map(|(bytes, checksum)| Page { bytes, checksum: *checksum }).collect()
    }

    /// Compares the pages within `range`, whose bytes are `bytes`, with their checksums; the range must hold whole pages.
    fn verify(&self, file: &File, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        let mut next = range.start;
        let from = self.pages.partition_point(|page| page.bytes.start < range.start);
        for page in self.pages[from..].iter().take_while(|page| page.bytes.end <= range.end) {
            let at = |offset: u64| usize::try_from(offset - range.start).expect("within the bytes");
            let found = page_checksum(&bytes[at(page.bytes.start)..at(page.bytes.end)]);
            if page.bytes.start != next || found != page.checksum {
                break;
            }
            next = page.bytes.end;
        }
        if next == range.end {
            return Ok(());
        }
        Err(Error::Damaged {
            object: file.meta.object.clone(),
            reason: format!("the page at byte {next} does not have the checksum it was written with"),
        })
    }
}

/// Ranges with no more between them than a gap as one, ascending.
fn merged(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap) => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_together_over_small_gaps() {
        let ranges = [900..1000, 0..100, 150..300, 301..400];
        assert_eq!(merged(&ranges, 50), [0..400, 900..1000]);
        assert_eq!(merged(&ranges, 0), [0..100, 150..300, 301..400, 900..1000]);
        assert_eq!(merged(&ranges, 500), std::iter::once(0..1000).collect::<Vec<_>>());
    }
}
