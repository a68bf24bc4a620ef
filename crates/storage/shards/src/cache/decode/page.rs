//! Decodes one data page.

use std::ops::Range;

use blocks::{Bitmap, Block, Compression, Dictionary, Mask, VECTOR_ROWS};
use parquet::basic::Encoding;
use parquet::column::page::Page;

use super::dictionary::{ChunkDictionary, Words};
use super::form::{Form, Width};
use super::unpack::{Lane, unpack};
use super::{Malformed, delta, hybrid};
use crate::cache::block::{ColumnBlock, REPEATED_MIN};
use crate::cache::passing::Passing;
use crate::{Error, Result};

/// Data page with decoded validity and still encoded values.
pub(super) struct PageValues<'a> {
    rows: usize,
    /// Number of rows that are not NULL.
    valid: usize,
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
    pub(super) fn of(page: &'a Page, rows: usize, is_nullable: bool, lanes: &mut [i64]) -> Result<Self, Malformed> {
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
        let mut values = Self { rows, valid: rows, validity: None, encoding: page.encoding(), bytes, page };
        let are_all = || hybrid::first_run(levels, 1).is_some_and(|(count, level)| rows <= count && level == 1);
        if is_nullable && rows != 0 && !are_all() {
            hybrid::decode(levels, 1, lanes)?;
            let bits = lanes.chunks(8).map(|levels| {
                levels.iter().enumerate().fold(0, |byte, (row, level)| byte | u8::from(*level != 0) << row)
            });
            let bits: Vec<u8> = bits.collect();
            values.valid = bits.iter().map(|byte| byte.count_ones() as usize).sum();
            values.validity = (values.valid != rows).then_some(bits);
        }
        Ok(values)
    }

    /// Packs the values into a block.
    pub(super) fn block(
        &self,
        form: Form,
        dictionary: Option<&ChunkDictionary>,
        lanes: &mut [i64],
    ) -> Result<ColumnBlock, Failure> {
        let validity = self.validity.as_deref().map(|bits| Bitmap::new(bits, 0));
        let bytes = match form {
            Form::Text => return self.texts(dictionary, lanes, validity),
            Form::Truth => {
                if self.encoding != Encoding::PLAIN {
                    return Err(Malformed("an encoding of booleans that the footer does not list").into());
                }
                if self.bytes.len() < self.valid.div_ceil(8) {
                    return Err(Malformed("booleans that end early").into());
                }
                unpack(self.bytes, 1, &mut lanes[..self.valid]);
                self.spread(lanes);
                blocks::encode_lanes(blocks::Kind::Boolean, lanes, validity)?
            }
            Form::Numbers(kind, width) => {
                self.lanes(width, dictionary, lanes)?;
                blocks::encode_lanes(kind, lanes, validity)?
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bits came from 32")]
            Form::Single => {
                self.lanes(Width::FourUnsigned, dictionary, lanes)?;
                let values: Vec<f32> = lanes.iter().map(|bits| f32::from_bits(*bits as u32)).collect();
                blocks::encode_f32(&values, validity)?
            }
            Form::Double => {
                self.lanes(Width::Eight, dictionary, lanes)?;
                let values: Vec<f64> = lanes.iter().map(|bits| f64::from_bits(bits.cast_unsigned())).collect();
                blocks::encode_f64(&values, validity)?
            }
        };
        Ok(ColumnBlock::Numbers(Block::open(bytes)?))
    }

    /// Decodes numbers, one lane for each row; NULL rows get zero.
    fn lanes(&self, width: Width, dictionary: Option<&ChunkDictionary>, lanes: &mut [i64]) -> Result<(), Malformed> {
        let values = &mut lanes[..self.valid];
        match self.encoding {
            Encoding::PLAIN => numbers(self.bytes, width, values)?,
            Encoding::DELTA_BINARY_PACKED => {
                delta::decode(self.bytes, values)?;
                // Deltas between 32-bit numbers wrap in 32 bits.
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "upper bits are discarded")]
                match width {
                    Width::Four => values.iter_mut().for_each(|value| *value = i64::from(*value as i32)),
                    Width::FourUnsigned => values.iter_mut().for_each(|value| *value = i64::from(*value as u32)),
                    Width::Eight => {}
                }
            }
            Encoding::RLE_DICTIONARY => {
                let Some(ChunkDictionary::Lanes(known)) = dictionary else {
                    return Err(Malformed("dictionary indices without a dictionary"));
                };
                self.codes(known.values().len(), values)?;
                let known = known.values();
                for value in values {
                    *value = known[usize::try_from(*value).expect("codes were checked against the dictionary")];
                }
            }
            _ => return Err(Malformed("an encoding that the footer does not list")),
        }
        self.spread(lanes);
        Ok(())
    }

    /// Reads the values without packing them, for a page that is not cached; `None` if only a block can hold them.
    /// Values stay dictionary-encoded if evaluating a predicate on the dictionary is cheaper than on the rows.
    pub(super) fn passing(&self, form: Form, dictionary: Option<&ChunkDictionary>) -> Result<Option<Passing>, Failure> {
        let rows = self.rows;
        match (form, self.encoding, dictionary) {
            (Form::Numbers(..), Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Lanes(numbers)))
                if (1..=rows).contains(&numbers.values().len()) =>
            {
                let codes = self.passing_codes(numbers.values().len())?;
                Ok(Some(Passing::of_number_codes(rows, codes, numbers, self.masks())))
            }
            (Form::Numbers(_, width), ..) => {
                let mut values = vec![0; rows];
                self.lanes(width, dictionary, &mut values)?;
                Ok(Some(Passing::of_numbers(values, self.masks())))
            }
            (Form::Text, Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Words(words)))
                if 0 < words.len() && words.distinct() * REPEATED_MIN <= rows =>
            {
                let codes = self.passing_codes(words.len())?;
                Ok(Some(Passing::of_word_codes(rows, codes, &words.passing()?, self.masks())))
            }
            (Form::Text, Encoding::PLAIN, _) => {
                let bytes = self.page.buffer().slice_ref(self.bytes);
                let mut places = vec![0..0; self.rows];
                text_places(&bytes, &mut places[..self.valid])?;
                if let Some(bits) = &self.validity {
                    let mut left = self.valid;
                    for row in (0..self.rows).rev() {
                        let is_valid = bits[row / 8] >> (row % 8) & 1 == 1;
                        left -= usize::from(is_valid);
                        places[row] = if is_valid { places[left].clone() } else { 0..0 };
                    }
                }
                Ok(Some(Passing::of_texts(bytes, places, self.masks())))
            }
            _ => Ok(None),
        }
    }

    /// Decodes the dictionary index of each row, in complete vectors.
    fn passing_codes(&self, entries: usize) -> Result<Vec<[u32; VECTOR_ROWS]>, Malformed> {
        let mut codes = vec![[0; VECTOR_ROWS]; self.rows.div_ceil(VECTOR_ROWS)];
        let lanes = codes.as_flattened_mut();
        self.codes(entries, &mut lanes[..self.valid])?;
        self.spread(lanes);
        Ok(codes)
    }

    /// Returns the validity bits in complete masks.
    fn masks(&self) -> Option<Vec<Mask>> {
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
    fn codes<T: Lane + Into<i64>>(&self, entries: usize, codes: &mut [T]) -> Result<(), Malformed> {
        let Some((width, bytes)) = self.bytes.split_first() else {
            return if codes.is_empty() { Ok(()) } else { Err(Malformed("dictionary indices that end early")) };
        };
        hybrid::decode(bytes, *width, codes)?;
        // An index that is too large makes a negative difference: the signs of all are combined without a branch.
        let last = i64::try_from(entries).unwrap_or(i64::MAX) - 1;
        let signs = codes.iter().fold(0, |signs, code| signs | (last - (*code).into()));
        if 0 <= signs { Ok(()) } else { Err(Malformed("dictionary indices beyond the dictionary")) }
    }

    /// Moves the values, which lie side by side, to their rows; NULL rows get zero.
    fn spread<T: Copy + Default>(&self, lanes: &mut [T]) {
        let Some(bits) = &self.validity else { return };
        let mut left = self.valid;
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
    fn texts(
        &self,
        dictionary: Option<&ChunkDictionary>,
        lanes: &mut [i64],
        validity: Option<Bitmap<'_>>,
    ) -> Result<ColumnBlock, Failure> {
        match (self.encoding, dictionary) {
            (Encoding::PLAIN, _) => {
                let values = strings(self.bytes, self.valid)?;
                let texts = match validity {
                    None => values,
                    Some(validity) => {
                        let mut values = values.into_iter();
                        let text = |row| if validity.get(row) { values.next().unwrap_or_default() } else { &[] };
                        (0..self.rows).map(text).collect()
                    }
                };
                Ok(ColumnBlock::of_strings(&texts, validity)?)
            }
            (Encoding::RLE_DICTIONARY, Some(ChunkDictionary::Words(words))) => {
                self.codes(words.len(), &mut lanes[..self.valid])?;
                self.words(words, lanes, validity)
            }
            _ => Err(Malformed("an encoding of strings that the footer does not list").into()),
        }
    }

    /// Packs dictionary-encoded strings: those that occur in the page get new codes in order, or are stored plainly if
    /// they rarely repeat.
    fn words(&self, words: &Words, lanes: &mut [i64], validity: Option<Bitmap<'_>>) -> Result<ColumnBlock, Failure> {
        let code = |lane: i64| usize::try_from(lane).expect("codes were checked against the dictionary");
        let mut is_used = vec![false; words.distinct()];
        let values = &lanes[..self.valid];
        values.iter().for_each(|lane| is_used[words.ranks[code(*lane)] as usize] = true);
        let used: Vec<usize> = (0..is_used.len()).filter(|rank| is_used[*rank]).collect();
        if self.rows < used.len() * REPEATED_MIN {
            let mut values = values.iter().map(|lane| words.get(code(*lane)));
            let is_valid = |row| validity.is_none_or(|validity| validity.get(row));
            let text = |row| if is_valid(row) { values.next().unwrap_or_default() } else { &[] };
            let texts: Vec<&[u8]> = (0..self.rows).map(text).collect();
            let bytes = blocks::encode_text(&texts, validity, Compression::None)?;
            return Ok(ColumnBlock::Texts(Block::open(bytes)?));
        }
        // NULL rows refer to the empty string, which sorts first.
        let has_nothing = used.first().is_some_and(|rank| words.ranked(*rank).is_empty());
        let nothing = (validity.is_some() && !has_nothing).then_some([].as_slice());
        let first = i64::from(nothing.is_some());
        let mut codes = vec![0; words.distinct()];
        for (code, rank) in (first..).zip(&used) {
            codes[*rank] = code;
        }
        for lane in &mut lanes[..self.valid] {
            *lane = codes[words.ranks[code(*lane)] as usize];
        }
        self.spread(lanes);
        let strings = nothing.into_iter().chain(used.iter().map(|rank| words.ranked(*rank)));
        let strings = Dictionary::of(&strings.collect::<Vec<_>>())?;
        let codes = Block::open(blocks::encode_lanes(blocks::Kind::Code, lanes, validity)?)?;
        Ok(ColumnBlock::of_codes(codes, strings))
    }
}

/// Decodes plain numbers.
pub(super) fn numbers(bytes: &[u8], width: Width, lanes: &mut [i64]) -> Result<(), Malformed> {
    const CUT_SHORT: Malformed = Malformed("numbers that end early");
    match width {
        Width::Four | Width::FourUnsigned => {
            let values = bytes.as_chunks::<4>().0.get(..lanes.len()).ok_or(CUT_SHORT)?;
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane = match width {
                    Width::Four => i32::from_le_bytes(*value).into(),
                    _ => u32::from_le_bytes(*value).into(),
                };
            }
        }
        Width::Eight => {
            let values = bytes.as_chunks::<8>().0.get(..lanes.len()).ok_or(CUT_SHORT)?;
            for (lane, value) in lanes.iter_mut().zip(values) {
                *lane = i64::from_le_bytes(*value);
            }
        }
    }
    Ok(())
}

/// Decodes plain strings, each preceded by its length.
pub(super) fn strings(bytes: &[u8], count: usize) -> Result<Vec<&[u8]>, Malformed> {
    // Every string takes four bytes at least, so a count beyond that allocates nothing.
    let mut places = vec![0..0; count.min(bytes.len() / 4)];
    text_places(bytes, &mut places)?;
    if places.len() < count {
        return Err(Malformed("strings that end early"));
    }
    Ok(places.into_iter().map(|place| &bytes[place.start as usize..place.end as usize]).collect())
}

/// Finds the byte range of each plain string and checks that all are valid UTF-8.
fn text_places(bytes: &[u8], places: &mut [Range<u32>]) -> Result<(), Malformed> {
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
pub(super) enum Failure {
    Malformed(Malformed),
    Block(blocks::Error),
    Other(Error),
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error)
    }
}

impl From<blocks::Error> for Failure {
    fn from(error: blocks::Error) -> Self {
        Self::Block(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}
