//! Fetches pages from storage and verifies their checksums.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use objects::Objects;

use super::{FileKind, OpenFile};
use crate::{Error, ExternalFileLocation, Result, page_checksum};

/// Gaps between ranges up to this size are read along, which is cheaper than another request.
const MERGED_GAP_BYTES_MAX: u64 = 64 << 10;
/// The same for reads over the network.
const REMOTE_MERGED_GAP_BYTES_MAX: u64 = 1 << 20;

/// Byte range and checksum of a page.
struct PageChecksum {
    bytes: Range<u64>,
    checksum: u32,
}

/// Location of a file.
#[derive(Debug, Clone)]
pub(crate) enum FileLocation {
    Shard(Objects),
    External(ExternalFileLocation),
}

impl FileLocation {
    /// Returns true if reads go over the network.
    pub(super) fn is_remote(&self) -> bool {
        match self {
            Self::Shard(objects) | Self::External(ExternalFileLocation::Object { objects, .. }) => !objects.is_local(),
            Self::External(ExternalFileLocation::Path { .. }) => false,
        }
    }
}

/// Fetches the bytes of each of `ranges` and verifies the checksums of all pages in them, if the file has any.
pub(crate) async fn fetch(
    place: &FileLocation,
    file: &OpenFile,
    pages: &PageChecksums,
    ranges: &[Range<u64>],
) -> Result<Vec<Bytes>> {
    let merged =
        merge_ranges(ranges, if place.is_remote() { REMOTE_MERGED_GAP_BYTES_MAX } else { MERGED_GAP_BYTES_MAX });
    let fetched = match place {
        FileLocation::Shard(objects) => objects.get_ranges(&file.meta.object, &merged).await?,
        FileLocation::External(place) => place.get_ranges(&merged).await?,
    };
    pages.fetched_bytes.fetch_add(merged.iter().map(|range| range.end - range.start).sum(), Ordering::Relaxed);
    let slices: Vec<Bytes> = ranges
        .iter()
        .map(|range| {
            let holder = merged.partition_point(|merged| merged.end < range.end);
            let at = |offset: u64| usize::try_from(offset - merged[holder].start).expect("inside its merged range");
            fetched[holder].slice(at(range.start)..at(range.end))
        })
        .collect();
    if matches!(file.file_kind, FileKind::External { .. }) {
        return Ok(slices);
    }
    for (range, bytes) in ranges.iter().zip(&slices) {
        pages.verify(file, range, bytes)?;
    }
    Ok(slices)
}

/// Checksums of the pages of the columns being read, by offset.
pub(crate) struct PageChecksums {
    pages: Vec<PageChecksum>,
    /// Counter of fetched bytes.
    fetched_bytes: Arc<AtomicU64>,
}

impl PageChecksums {
    pub(crate) fn new(file: &OpenFile, row_group: usize, leaves: &[usize], fetched: &Arc<AtomicU64>) -> Self {
        let mut pages: Vec<PageChecksum> =
            leaves.iter().flat_map(|leaf| Self::list_chunk_pages(file, row_group, *leaf)).collect();
        pages.sort_unstable_by_key(|page| page.bytes.start);
        Self { pages, fetched_bytes: Arc::clone(fetched) }
    }

    /// Lists the pages of a column chunk: the dictionary page if there is one, then the data pages.
    fn list_chunk_pages(file: &OpenFile, row_group: usize, leaf: usize) -> Vec<PageChecksum> {
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
        let FileKind::Shard { checksums } = &file.file_kind else { return Vec::new() };
        let checksums = checksums.chunk(row_group, leaf);
        let ranges = dictionary.into_iter().chain(data);
        ranges.zip(checksums).map(|(bytes, checksum)| PageChecksum { bytes, checksum: *checksum }).collect()
    }

    /// Verifies the pages of `range`, whose bytes are `bytes`; the range must consist of complete pages.
    fn verify(&self, file: &OpenFile, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        let mut next = range.start;
        let from = self.pages.partition_point(|page| page.bytes.start < range.start);
        for page in self.pages[from..].iter().take_while(|page| page.bytes.end <= range.end) {
            let at = |offset: u64| usize::try_from(offset - range.start).expect("inside the range");
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

/// Merges ranges with gaps of at most `gap` bytes; returns them ascending.
fn merge_ranges(ranges: &[Range<u64>], gap: u64) -> Vec<Range<u64>> {
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
        assert_eq!(merge_ranges(&ranges, 50), [0..400, 900..1000]);
        assert_eq!(merge_ranges(&ranges, 0), [0..100, 150..300, 301..400, 900..1000]);
        assert_eq!(merge_ranges(&ranges, 500), std::iter::once(0..1000).collect::<Vec<_>>());
    }
}
