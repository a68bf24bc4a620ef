//! Checksums of a file's pages, stored in its footer: the catalog verifies the footer, and the footer the pages.

use std::ops::Range;

use parquet::file::metadata::ParquetMetaData;
use xxhash_rust::xxh3::xxh3_64;

#[cfg(test)]
mod tests;

/// Footer key of the checksums, eight hexadecimal digits each, in the order of the pages in the file.
pub(crate) const CHECKSUMS_KEY: &str = "kiln.page_checksums";

/// Computes the checksum of a page, header included: the lower half of its XXH3.
#[must_use]
pub fn page_checksum(page: &[u8]) -> u32 {
    xxh3_64(page) as u32
}

/// Checksums of a file's pages by row group, then column: the dictionary page if there is one, then the data pages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checksums {
    values: Vec<u32>,
    /// Range of each column chunk's checksums, by row group, then column.
    chunk_ranges: Vec<Range<usize>>,
    columns_per_row_group: usize,
}

impl Checksums {
    /// Reads the checksums from a file's footer; `None` if it has none or they do not match its pages. The metadata
    /// must contain the offset index.
    #[must_use]
    pub fn read(metadata: &ParquetMetaData) -> Option<Self> {
        let pairs = metadata.file_metadata().key_value_metadata()?;
        let text = pairs.iter().find(|pair| pair.key == CHECKSUMS_KEY)?.value.as_deref()?;
        let values = decode(text)?;
        let offset_index = metadata.offset_index()?;
        let mut chunks = Vec::new();
        let mut next = 0;
        for (row_group, indexes) in metadata.row_groups().iter().zip(offset_index) {
            for (chunk, index) in row_group.columns().iter().zip(indexes) {
                let has_dictionary = chunk.dictionary_page_offset().is_some();
                let pages = index.page_locations().len() + usize::from(has_dictionary);
                chunks.push(next..next + pages);
                next += pages;
            }
        }
        let columns = metadata.file_metadata().schema_descr().num_columns();
        let fits = next == values.len() && chunks.len() == columns * metadata.num_row_groups();
        fits.then_some(Self { values, chunk_ranges: chunks, columns_per_row_group: columns })
    }

    /// Returns the checksums of a column chunk: the dictionary page if it has one, then the data pages.
    #[must_use]
    pub fn chunk(&self, row_group: usize, column: usize) -> &[u32] {
        &self.values[self.chunk_ranges[row_group * self.columns_per_row_group + column].clone()]
    }
}

/// Encodes checksums for the footer.
pub(crate) fn encode(checksums: &[u32]) -> String {
    checksums.iter().map(|checksum| format!("{checksum:08x}")).collect()
}

fn decode(text: &str) -> Option<Vec<u32>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(8) {
        return None;
    }
    digits.chunks_exact(8).map(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()).collect()
}
