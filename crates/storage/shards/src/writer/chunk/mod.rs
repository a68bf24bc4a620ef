//! Encodes a column chunk into Parquet pages: values are looked up, packed and bounded in loops specialized by type.
//! Other columns go through Parquet's own writer (`column_writer.rs`).
//!
//! - `supported_columns.rs`: supported columns, and extraction of their values.
//! - `dictionary.rs`: dictionaries; `rle_bit_packed.rs`, `delta.rs`, `bit_packing.rs`: Parquet's encodings.
//! - `bounds.rs`: bounds of pages; `compress.rs`: compression; `page_assembler.rs`: assembles the pages.

mod bit_packing;
mod bounds;
mod compress;
mod delta;
mod dictionary;
mod page_assembler;
mod rle_bit_packed;
mod supported_columns;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;
use types::SqlType;

use self::bounds::ChunkBounds;
use self::dictionary::{NumberDictionaryBuilder, StringDictionaryBuilder, append_plain};
use self::page_assembler::PageAssembler;
use self::supported_columns::{ChunkForm, NumberWidth, append_lanes};
use super::encodings::{ColumnEncoding, PAGE_BYTES_MAX};
use crate::stats::MinMax;

/// Column chunk under construction.
pub(super) struct ChunkEncoder {
    column: ColumnDescPtr,
    column_encoding: ColumnEncoding,
    chunk_form: ChunkForm,
    dictionary: Dictionary,
    /// True once the dictionary takes no more values.
    is_dictionary_full: bool,
    bounds: Option<ChunkBounds>,
    pages: PageAssembler,
}

/// Dictionary of a chunk.
enum Dictionary {
    None,
    Numbers(NumberDictionaryBuilder, NumberWidth),
    Texts(StringDictionaryBuilder),
}

impl ChunkEncoder {
    /// Starts a chunk; `None` if the column is not supported here.
    pub(super) fn begin(column: &ColumnDescPtr, sql_type: &SqlType, column_encoding: ColumnEncoding) -> Option<Self> {
        let form = ChunkForm::from_types(sql_type, column.physical_type())?;
        let dictionary = match form {
            _ if !column_encoding.dictionary => Dictionary::None,
            ChunkForm::Numbers(width) => Dictionary::Numbers(NumberDictionaryBuilder::default(), width),
            ChunkForm::Texts => Dictionary::Texts(StringDictionaryBuilder::default()),
        };
        let bounds = column_encoding.page_bounds.then(|| ChunkBounds::new(column.physical_type()));
        let pages = PageAssembler::new(column_encoding.compressed);
        Some(Self {
            column: Arc::clone(column),
            column_encoding,
            chunk_form: form,
            dictionary,
            is_dictionary_full: false,
            bounds,
            pages,
        })
    }

    /// Adds a page, or several if its strings are too long for one. `bounds` are the bounds of its values, if it has
    /// any.
    pub(super) fn add(&mut self, values: &[ArrayRef], bounds: Option<&MinMax>) -> Result<()> {
        match self.chunk_form {
            ChunkForm::Numbers(width) => self.add_numbers(values, width, bounds),
            ChunkForm::Texts => {
                let values = values.iter().map(as_string_views).collect::<Result<Vec<_>>>()?;
                split_into_pages(&values).iter().try_for_each(|page| self.add_texts(page, bounds))
            }
        }
    }

    /// Returns the approximate size so far.
    pub(super) fn bytes(&self) -> usize {
        self.pages.bytes() + self.dictionary.bytes()
    }

    /// Completes the chunk; returns its bytes and its metadata for the footer.
    pub(super) fn finish(self) -> Result<(Bytes, ColumnCloseResult)> {
        let dictionary = match &self.dictionary {
            Dictionary::None => None,
            Dictionary::Numbers(numbers, width) => Some((numbers.len(), numbers.page_bytes(*width))),
            Dictionary::Texts(texts) => Some((texts.len(), texts.page_bytes().to_vec())),
        };
        let bounds = self.bounds.map(ChunkBounds::finish).transpose()?;
        self.pages.finish(self.column, dictionary, bounds)
    }

    fn add_numbers(&mut self, values: &[ArrayRef], width: NumberWidth, bounds: Option<&MinMax>) -> Result<()> {
        let rows: usize = values.iter().map(|part| part.len()).sum();
        let mut lanes = Vec::with_capacity(rows);
        for part in values {
            append_lanes(part, &mut lanes).ok_or_else(|| unexpected_type_error(part))?;
        }
        let mut bytes = self.encode_levels(values.iter().map(AsRef::as_ref));
        let encoding = 'encoded: {
            if let Dictionary::Numbers(numbers, width) = &mut self.dictionary
                && !self.is_dictionary_full
            {
                let mut codes = Vec::new();
                self.is_dictionary_full = !numbers.append_codes(&lanes, *width, &mut codes);
                if !self.is_dictionary_full {
                    rle_bit_packed::append_codes(&codes, numbers.len(), &mut bytes);
                    break 'encoded Encoding::RLE_DICTIONARY;
                }
            }
            match self.column_encoding.encoding {
                Encoding::DELTA_BINARY_PACKED => delta::encode(&lanes, width, &mut bytes),
                _ => width.append_plain(&lanes, &mut bytes),
            }
            self.column_encoding.encoding
        };
        self.add_page(rows, rows - lanes.len(), encoding, bytes, bounds)
    }

    fn add_texts(&mut self, values: &[StringViewArray], bounds: Option<&MinMax>) -> Result<()> {
        let rows: usize = values.iter().map(Array::len).sum();
        let nulls: usize = values.iter().map(Array::null_count).sum();
        let mut bytes = self.encode_levels(values.iter().map(|part| part as &dyn Array));
        let encoding = 'encoded: {
            if let Dictionary::Texts(texts) = &mut self.dictionary
                && !self.is_dictionary_full
            {
                let mut codes = Vec::with_capacity(rows);
                self.is_dictionary_full = !texts.append_codes(values, &mut codes);
                if !self.is_dictionary_full {
                    rle_bit_packed::append_codes(&codes, texts.len(), &mut bytes);
                    break 'encoded Encoding::RLE_DICTIONARY;
                }
            }
            let lengths = values.iter().flat_map(StringViewArray::lengths);
            bytes.reserve(lengths.map(|length| length as usize + 4).sum());
            for part in values {
                for row in (0..part.len()).filter(|row| part.is_valid(*row)) {
                    append_plain(part.value(row).as_bytes(), &mut bytes);
                }
            }
            Encoding::PLAIN
        };
        self.add_page(rows, nulls, encoding, bytes, bounds)
    }

    /// Returns the start of a page: definition levels, if the column is nullable.
    fn encode_levels<'a>(&self, values: impl Iterator<Item = &'a dyn Array> + Clone) -> Vec<u8> {
        let mut bytes = Vec::new();
        if 0 < self.column.max_def_level() {
            rle_bit_packed::append_levels(values, &mut bytes);
        }
        bytes
    }

    fn add_page(
        &mut self,
        rows: usize,
        nulls: usize,
        encoding: Encoding,
        bytes: Vec<u8>,
        bounds: Option<&MinMax>,
    ) -> Result<()> {
        if let Some(all) = &mut self.bounds {
            all.add(bounds.filter(|_| nulls < rows), nulls as u64);
        }
        self.pages.add(rows, encoding, bytes)
    }
}

impl Dictionary {
    fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Numbers(numbers, width) => numbers.len() * width.bytes(),
            Self::Texts(texts) => texts.page_bytes().len(),
        }
    }
}

/// Splits strings into pages of limited size; mostly one.
fn split_into_pages(values: &[&StringViewArray]) -> Vec<Vec<StringViewArray>> {
    let mut pages = vec![Vec::new()];
    let mut page_bytes = 0;
    for part in values {
        let bytes: usize = part.lengths().map(|length| length as usize).sum();
        if page_bytes + bytes <= PAGE_BYTES_MAX {
            page_bytes += bytes;
            pages.last_mut().expect("there is always a last page").push((*part).clone());
            continue;
        }
        let mut start = 0;
        for (row, length) in part.lengths().enumerate() {
            if PAGE_BYTES_MAX < page_bytes + length as usize && 0 < page_bytes {
                pages.last_mut().expect("there is always a last page").push((**part).slice(start, row - start));
                pages.push(Vec::new());
                (start, page_bytes) = (row, 0);
            }
            page_bytes += length as usize;
        }
        pages.last_mut().expect("there is always a last page").push((**part).slice(start, part.len() - start));
    }
    pages.retain(|page| page.iter().any(|part| !part.is_empty()));
    pages
}

fn as_string_views(values: &ArrayRef) -> Result<&StringViewArray> {
    values.as_string_view_opt().ok_or_else(|| unexpected_type_error(values))
}

/// Returns the error for an array of an unexpected type.
fn unexpected_type_error(values: &ArrayRef) -> ParquetError {
    ParquetError::General(format!("a column chunk got values of the unexpected Arrow type {}", values.data_type()))
}
