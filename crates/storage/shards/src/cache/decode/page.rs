//! Decodes one data page.

use std::ops::Range;

use blocks::{Block, Compression, Dictionary, Mask, VECTOR_ROWS, ValidityBitmap};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::dictionary::{ChunkDictionary, StringDictionary};
use super::supported_columns::{PageForm, PlainWidth};
use super::unpack::{Lane, unpack};
use super::{Malformed, delta, rle_bit_packed};
use crate::cache::block::{ColumnBlock, DICTIONARY_REPEATS_MIN};
use crate::cache::uncached_page::UncachedPage;
use crate::{Error, Result};

/// Data page with decoded validity and still encoded values.
pub(super) struct PageValues<'a> {
    rows: usize,
    /// Number of rows that are not NULL.
    valid_count: usize,
    /// Validity bit of each row; `None` if there are no NULLs.
    validity: Option<Vec<u8>>,
    encoding: Encoding,
    /// Encoded values.
    bytes: &'a [u8],
    /// The page that `bytes` point into.
    page: &'a Page,
}

impl<'a> PageValues<'a> {
    /// Parses a page that must have `rows` rows; `lanes` is scratch space of that length.
    pub(super) fn parse(page: &'a Page, rows: usize, is_nullable: bool, lanes: &mut [i64]) -> Result<Self, Malformed> {
        const CUT_SHORT: Malformed = Malformed("levels that end early");
        if page.num_values() as usize != rows {
            return Err(Malformed("a page whose value count differs from its row count"));
        }
        let (levels, bytes): (&[u8], &[u8]) = match page {
            Page::DataPage { buf, .. } if is_nullable => {
                let (length, rest) = buf.split_first_chunk::<4>().ok_or(CUT_SHORT)?;
                rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or(CUT_SHORT)?
            }
            Page::DataPage { buf, .. } => (&[], buf),
            Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
                let rest = buf.get(*rep_levels_byte_len as usize..).ok_or(CUT_SHORT)?;
                rest.split_at_checked(*def_levels_byte_len as usize).ok_or(CUT_SHORT)?
            }
            Page::DictionaryPage { .. } => return Err(Malformed("a dictionary page in place of a data page")),
        };
        let mut values = Self { rows, valid_count: rows, validity: None, encoding: page.encoding(), bytes, page };
        let are_all = || rle_bit_packed::first_run(levels, 1).is_some_and(|(count, level)| rows <= count && level == 1);
        if is_nullable && rows != 0 && !are_all() {
            rle_bit_packed::decode(levels, 1, lanes)?;
            let bits = lanes.chunks(8).map(|levels| {
                levels.iter().enumerate().fold(0, |byte, (row, level)| byte | u8::from(*level != 0) << row)
            });
            let bits: Vec<u8> = bits.collect();
            values.valid_count = bits.iter().map(|byte| byte.count_ones() as usize).sum();
            values.validity = (values.valid_count != rows).then_some(bits);
        }
        Ok(values)
    }

    /// Packs the values into a block.
    pub(super) fn to_block(
        &self,
        form: PageForm,
        dictionary: Option<&ChunkDictionary>,
        lanes: &mut [i64],
    ) -> Result<ColumnBlock, PageDecodeError> {
        let validity = self.validity.as_deref().map(|bits| ValidityBitmap::new(bits, 0));
        let bytes = match form {
            PageForm::Text => return self.strings_to_block(dictionary, lanes, validity),
            PageForm::Boolean => {
                if self.encoding != Encoding::PLAIN {
                    return Err(Malformed("an encoding of booleans that the footer does not list").into());
                }
                if self.bytes.len() < self.valid_count.div_ceil(8) {
                    return Err(Malformed("booleans that end early").into());
                }
                unpack(self.bytes, 1, &mut lanes[..self.valid_count]);
                self.spread_over_nulls(lanes);
                blocks::encode_lanes(blocks::ValueKind::Boolean, lanes, validity)?
            }
            PageForm::Numbers(kind, width) => {
                self.decode_numbers(width, dictionary, lanes)?;
                blocks::encode_lanes(kind, lanes, validity)?
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bits came from 32")]
            PageForm::Float32 => {
                self.decode_numbers(PlainWidth::FourBytesUnsigned, dictionary, lanes)?;
                let values: Vec<f32> = lanes.iter().map(|bits| f32::from_bits(*bits as u32)).collect();
                blocks::encode_f32(&values, validity)?
            }
            PageForm::Float64 => {
                self.decode_numbers(PlainWidth::EightBytes, dictionary, lanes)?;
                let values: Vec<f64> = lanes.iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect();
                blocks::encode_f64(&values, validity)?
            }
        };
        Ok(ColumnBlock::Numbers(Block::open(bytes)?))
    }

    /// Decodes numbers, one lane for each row; NULL rows get zero.
    fn decode_numbers(
        &self,
        width: PlainWidth,
        dictionary: Option<&ChunkDictionary>,
        lanes: &mut [i64],
    ) -> Result<(), Malformed> {
        let values = &mut lanes[..self.valid_count];
        match self.encoding {
            Encoding::PLAIN => decode_plain_numbers(self.bytes, width, values)?,
            Encoding::DELTA_BINARY_PACKED => {
                delta::decode(self.bytes, values)?;
                // Deltas between 32-bit numbers wrap in 32 bits.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "upper bits are discarded")]
                match width {
                    PlainWidth::FourBytes => values.iter_mut().for_each(|value| *value = i64::from(*value as i32)),
                    PlainWidth::FourBytesUnsigned => {
                        values.iter_mut().for_each(|value| *value = i64::from(*value as u32))
                    }
                    PlainWidth::EightBytes => {}
                }
            }
            Encoding::RLE_DICTIONARY => {
                let Some(ChunkDictionary::Numbers(known)) = dictionary else {
                    return Err(Malformed("dictionary indices without a dictionary"));
                };
                self.decode_codes(known.values().len(), values)?;
                let known = known.values();
                for value in values {
                    *value = known[usize::try_from(*value).expect("codes were checked against the dictionary")];
                }
            }
            _ => return Err(Malformed("an encoding that the footer does not list")),
        }
        self.spread_over_nulls(lanes);
        Ok(())
    }

    /// Reads the values without packing them, for a page that is not cached; `None` if only a block can hold them.
    /// Values stay dictionary-encoded if evaluating a predicate on the dictionary is cheaper than on the rows.
    pub(super) fn to_uncached(
        &self,
        form: PageForm,
        dictionary: Option<&ChunkDictionary>,
    ) -> Result<Option<UncachedPage>, PageDecodeError> {
        let rows = self.rows;
        match (form, self.encoding, dictionary) {
            (PageForm::Numbers(..), Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Numbers(numbers)))
                if (1..=rows).contains(&numbers.values().len()) =>
            {
                let codes = self.decode_row_codes(numbers.values().len())?;
                Ok(Some(UncachedPage::from_number_codes(rows, codes, numbers, self.validity_masks())))
            }
            (PageForm::Numbers(_, width), ..) => {
                let mut values = vec![0; rows];
                self.decode_numbers(width, dictionary, &mut values)?;
                Ok(Some(UncachedPage::from_numbers(values, self.validity_masks())))
            }
            (PageForm::Text, Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Strings(words)))
                if 0 < words.len() && words.distinct() * DICTIONARY_REPEATS_MIN <= rows =>
            {
                let codes = self.decode_row_codes(words.len())?;
                Ok(Some(UncachedPage::from_string_codes(rows, codes, &words.sorted()?, self.validity_masks())))
            }
            (PageForm::Text, Encoding::PLAIN, _) => {
                let bytes = self.page.buffer().slice_ref(self.bytes);
                let mut places = vec![0..0; self.rows];
                string_ranges(&bytes, &mut places[..self.valid_count])?;
                if let Some(bits) = &self.validity {
                    let mut left = self.valid_count;
                    for row in (0..self.rows).rev() {
                        let is_valid = bits[row / 8] >> (row % 8) & 1 == 1;
                        left -= usize::from(is_valid);
                        places[row] = if is_valid { places[left].clone() } else { 0..0 };
                    }
                }
                Ok(Some(UncachedPage::from_strings(bytes, places, self.validity_masks())))
            }
            _ => Ok(None),
        }
    }

    /// Decodes the dictionary index of each row, in complete vectors.
    fn decode_row_codes(&self, entries: usize) -> Result<Vec<[u32; VECTOR_ROWS]>, Malformed> {
        let mut codes = vec![[0; VECTOR_ROWS]; self.rows.div_ceil(VECTOR_ROWS)];
        let lanes = codes.as_flattened_mut();
        self.decode_codes(entries, &mut lanes[..self.valid_count])?;
        self.spread_over_nulls(lanes);
        Ok(codes)
    }

    /// Returns the validity bits in complete masks.
    fn validity_masks(&self) -> Option<Vec<Mask>> {
        let bits = self.validity.as_deref()?;
        let mut masks = vec![Mask::default(); self.rows.div_ceil(VECTOR_ROWS)];
        for (word, bytes) in masks.as_flattened_mut().iter_mut().zip(bits.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        Some(masks)
    }

    /// Decodes dictionary indices, one for each value that is not NULL, and checks that all are below `entries`.
    fn decode_codes<T: Lane + Into<i64>>(&self, entries: usize, codes: &mut [T]) -> Result<(), Malformed> {
        let Some((width, bytes)) = self.bytes.split_first() else {
            return if codes.is_empty() { Ok(()) } else { Err(Malformed("dictionary indices that end early")) };
        };
        rle_bit_packed::decode(bytes, *width, codes)?;
        // An index that is too large makes a negative difference: the signs of all are combined without a branch.
        let last = i64::try_from(entries).unwrap_or(i64::MAX) - 1;
        let signs = codes.iter().fold(0, |signs, code| signs | (last - (*code).into()));
        if 0 <= signs { Ok(()) } else { Err(Malformed("dictionary indices beyond the dictionary")) }
    }

    /// Moves the values, which lie side by side, to their rows; NULL rows get zero.
    fn spread_over_nulls<T: Copy + Default>(&self, lanes: &mut [T]) {
        let Some(bits) = &self.validity else { return };
        let mut left = self.valid_count;
        for row in (0..self.rows).rev() {
            if bits[row / 8] >> (row % 8) & 1 == 1 {
                left -= 1;
                lanes[row] = lanes[left];
            } else {
                lanes[row] = T::default();
            }
        }
    }

    /// Packs strings into a block.
    fn strings_to_block(
        &self,
        dictionary: Option<&ChunkDictionary>,
        lanes: &mut [i64],
        validity: Option<ValidityBitmap<'_>>,
    ) -> Result<ColumnBlock, PageDecodeError> {
        match (self.encoding, dictionary) {
            (Encoding::PLAIN, _) => {
                let values = decode_plain_strings(self.bytes, self.valid_count)?;
                let texts = match validity {
                    None => values,
                    Some(validity) => {
                        let mut values = values.into_iter();
                        let text = |row| if validity.is_valid(row) { values.next().unwrap_or_default() } else { &[] };
                        (0..self.rows).map(text).collect()
                    }
                };
                Ok(ColumnBlock::from_strings(&texts, validity)?)
            }
            (Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Strings(words))) => {
                self.decode_codes(words.len(), &mut lanes[..self.valid_count])?;
                self.dictionary_to_block(words, lanes, validity)
            }
            _ => Err(Malformed("an encoding of strings that the footer does not list").into()),
        }
    }

    /// Packs dictionary-encoded strings: those that occur in the page get new codes in order, or are stored plainly if
    /// they rarely repeat.
    fn dictionary_to_block(
        &self,
        words: &StringDictionary,
        lanes: &mut [i64],
        validity: Option<ValidityBitmap<'_>>,
    ) -> Result<ColumnBlock, PageDecodeError> {
        let code = |lane: i64| usize::try_from(lane).expect("codes were checked against the dictionary");
        let mut is_used = vec![false; words.distinct()];
        let values = &lanes[..self.valid_count];
        values.iter().for_each(|lane| is_used[words.ranks[code(*lane)] as usize] = true);
        let used: Vec<usize> = (0..is_used.len()).filter(|rank| is_used[*rank]).collect();
        if self.rows < used.len() * DICTIONARY_REPEATS_MIN {
            let mut values = values.iter().map(|lane| words.get(code(*lane)));
            let is_valid = |row| validity.is_none_or(|validity| validity.is_valid(row));
            let text = |row| if is_valid(row) { values.next().unwrap_or_default() } else { &[] };
            let texts: Vec<&[u8]> = (0..self.rows).map(text).collect();
            let bytes = blocks::encode_text(&texts, validity, Compression::None)?;
            return Ok(ColumnBlock::Texts(Block::open(bytes)?));
        }
        // NULL rows refer to the empty string, which sorts first.
        let has_nothing = used.first().is_some_and(|rank| words.get_by_rank(*rank).is_empty());
        let nothing = (validity.is_some() && !has_nothing).then_some([].as_slice());
        let first = i64::from(nothing.is_some());
        let mut codes = vec![0; words.distinct()];
        for (code, rank) in (first..).zip(&used) {
            codes[*rank] = code;
        }
        for lane in &mut lanes[..self.valid_count] {
            *lane = codes[words.ranks[code(*lane)] as usize];
        }
        self.spread_over_nulls(lanes);
        let strings = nothing.into_iter().chain(used.iter().map(|rank| words.get_by_rank(*rank)));
        let strings = Dictionary::from_sorted(&strings.collect::<Vec<_>>())?;
        let codes = Block::open(blocks::encode_lanes(blocks::ValueKind::Code, lanes, validity)?)?;
        Ok(ColumnBlock::from_codes(codes, strings))
    }
}

/// Decodes plain numbers.
pub(super) fn decode_plain_numbers(bytes: &[u8], width: PlainWidth, lanes: &mut [i64]) -> Result<(), Malformed> {
    const CUT_SHORT: Malformed = Malformed("numbers that end early");
    match width {
        PlainWidth::FourBytes | PlainWidth::FourBytesUnsigned => {
            let values = bytes.as_chunks::<4>().0.get(..lanes.len()).ok_or(CUT_SHORT)?;
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane = match width {
                    PlainWidth::FourBytes => i32::from_le_bytes(*value).into(),
                    _ => u32::from_le_bytes(*value).into(),
                };
            }
        }
        PlainWidth::EightBytes => {
            let values = bytes.as_chunks::<8>().0.get(..lanes.len()).ok_or(CUT_SHORT)?;
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane = i64::from_le_bytes(*value);
            }
        }
    }
    Ok(())
}

/// Decodes plain strings, each preceded by its length.
pub(super) fn decode_plain_strings(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>, Malformed> {
    // Every string takes four bytes at least, so a count beyond that allocates nothing.
    let mut places = vec![0..0; count.min(bytes.len() / 4)];
    string_ranges(bytes, &mut places)?;
    if places.len() < count {
        return Err(Malformed("strings that end early"));
    }
    Ok(places.into_iter().map(|place| &bytes[place.start as usize..place.end as usize]).collect())
}

/// Finds the byte range of each plain string and checks that all are valid UTF-8.
fn string_ranges(bytes: &[u8], places: &mut [Range<u32>]) -> Result<(), Malformed> {
    const CUT_SHORT: Malformed = Malformed("strings that end early");
    if u32::try_from(bytes.len()).is_err() {
        return Err(Malformed("strings of more than 4 GB"));
    }
    // Lengths of short strings are ASCII, too.
    let are_ascii = bytes.is_ascii();
    let mut at = 0;
    for place in places {
        let length = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(CUT_SHORT)?;
        let start = at + length.len();
        let end = start.saturating_add(u32::from_le_bytes(*length) as usize);
        let string = bytes.get(start..end).ok_or(CUT_SHORT)?;
        if !are_ascii && str::from_utf8(string).is_err() {
            return Err(Malformed("strings that are not UTF-8"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "looked at with all bytes")]
        {
            *place = start as u32..end as u32;
        }
        at = end;
    }
    Ok(())
}

/// Error of decoding a page.
pub(super) enum PageDecodeError {
    Malformed(Malformed),
    Block(blocks::Error),
    Other(Error),
}

impl From<Malformed> for PageDecodeError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl From<blocks::Error> for PageDecodeError {
    fn from(error: blocks::Error) -> Self {
        Self::Block(error)
    }
}

impl From<Error> for PageDecodeError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}
