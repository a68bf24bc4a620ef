//! Dictionary pages.

use std::sync::{Arc, OnceLock};

use arrow::buffer::Buffer;
use blocks::Dictionary;

use super::Malformed;
use super::page::{decode_plain_numbers, decode_plain_strings};
use super::supported_columns::PageForm;
use crate::cache::block::dictionary_views;
use crate::cache::uncached_page;

/// Decoded dictionary page.
pub(super) enum ChunkDictionary {
    /// Numbers, or the bits of floats.
    Numbers(Arc<uncached_page::NumberDictionary>),
    Strings(StringDictionary),
}

/// Strings of a dictionary page, by index and by rank.
pub(super) struct StringDictionary {
    heap: bytes::Bytes,
    /// Byte range of each string in the heap.
    ranges: Vec<(u32, u32)>,
    /// Rank of each string: the number of distinct lesser ones.
    pub(super) ranks: Vec<u32>,
    /// Index of a string of each rank.
    entry_at_rank: Vec<u32>,
    /// Form for uncached pages, built on first use.
    sorted: OnceLock<Arc<uncached_page::SortedStrings>>,
}

impl ChunkDictionary {
    /// Decodes a dictionary page of `count` entries.
    pub(super) fn decode(page: &bytes::Bytes, count: usize, form: PageForm) -> Result<Self, Malformed> {
        if let Some(width) = form.width() {
            let mut lanes = vec![0; check_entry_count(count, page)?];
            decode_plain_numbers(page, width, &mut lanes)?;
            return Ok(Self::Numbers(Arc::new(uncached_page::NumberDictionary::new(lanes))));
        }
        match form {
            PageForm::Text => StringDictionary::decode(page, check_entry_count(count, page)?).map(Self::Strings),
            _ => Err(Malformed("a dictionary of booleans")),
        }
    }
}

/// Checks the number of entries that a page claims: each takes a byte at least.
fn check_entry_count(count: usize, page: &[u8]) -> Result<usize, Malformed> {
    if page.len() < count { Err(Malformed("a dictionary that ends early")) } else { Ok(count) }
}

impl StringDictionary {
    fn decode(page: &bytes::Bytes, count: usize) -> Result<Self, Malformed> {
        let texts = decode_plain_strings(page, count)?;
        let start = page.as_ptr() as usize;
        let place = |text: &&[u8]| {
            let from = text.as_ptr() as usize - start;
            (u32::try_from(from), u32::try_from(from + text.len()))
        };
        let place = |text| match place(text) {
            (Ok(from), Ok(to)) => Ok((from, to)),
            _ => Err(Malformed("a dictionary of more than 4 GB")),
        };
        let places = texts.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let mut order: Vec<u32> = (0..u32::try_from(count).map_err(|_| Malformed("too many strings"))?).collect();
        order.sort_unstable_by_key(|number| texts[*number as usize]);
        let (mut ranks, mut by_rank) = (vec![0; count], Vec::<u32>::with_capacity(count));
        for number in order {
            let text = texts[number as usize];
            if by_rank.last().is_none_or(|last| texts[*last as usize] != text) {
                by_rank.push(number);
            }
            ranks[number as usize] = u32::try_from(by_rank.len() - 1).expect("there are no more ranks than strings");
        }
        Ok(Self { heap: page.clone(), ranges: places, ranks, entry_at_rank: by_rank, sorted: OnceLock::new() })
    }

    /// Returns the dictionary in the form for uncached pages.
    pub(super) fn sorted(&self) -> Result<Arc<uncached_page::SortedStrings>, blocks::Error> {
        if let Some(known) = self.sorted.get() {
            return Ok(Arc::clone(known));
        }
        // NULL rows have code 0, which is the empty string.
        let has_nothing = self.entry_at_rank.first().is_some_and(|number| self.get(*number as usize).is_empty());
        let nothing = (!has_nothing).then_some([].as_slice());
        let first = u32::from(nothing.is_some());
        let strings = nothing.into_iter().chain((0..self.distinct()).map(|rank| self.get_by_rank(rank)));
        let strings = Dictionary::from_sorted(&strings.collect::<Vec<_>>())?;
        let places = self.ranks.iter().map(|rank| rank + first).collect();
        let (views, heap) = dictionary_views(&strings);
        let words = uncached_page::SortedStrings { strings, sorted_codes: places, views, heap: Buffer::from_vec(heap) };
        Ok(Arc::clone(self.sorted.get_or_init(|| Arc::new(words))))
    }

    /// Returns the number of distinct strings.
    pub(super) fn distinct(&self) -> usize {
        self.entry_at_rank.len()
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the string at a dictionary index.
    pub(super) fn get(&self, code: usize) -> &[u8] {
        let (from, to) = self.ranges[code];
        &self.heap[from as usize..to as usize]
    }

    /// Returns the string of a rank.
    pub(super) fn get_by_rank(&self, rank: usize) -> &[u8] {
        self.get(self.entry_at_rank[rank] as usize)
    }
}
