//! Long strings as a record has them: compressed (FSST), for a disk holds more of them then and gives them sooner. In memory they are as they
//! are: searching them compressed takes eleven times as long (`docs/performance.md`).

use std::borrow::Cow;

use blocks::{Bitmap, Block, Compression, Scheme, TextValues};

/// Bytes of a string, on average, from which on a table of symbols is worth its time.
const LONG_BYTES: usize = 16;

/// The bytes of a block of strings; `None` for a block that cannot be read.
pub(super) fn compressed(block: &Block) -> Option<Cow<'_, [u8]>> {
    if block.bytes().len() < block.head().rows * LONG_BYTES {
        return Some(Cow::Borrowed(block.bytes()));
    }
    let bytes = encoded(&block.read_text().ok()?, Compression::Symbols)?;
    Some(Cow::Owned(bytes.into()))
}

/// The block of strings as it is searched; `None` where they are not UTF-8, which who reads them relies on.
pub(super) fn plain(block: Block) -> Option<Block> {
    let texts = block.read_text().ok()?;
    let all = str::from_utf8(&texts.bytes).ok()?;
    if !texts.offsets.iter().all(|offset| all.is_char_boundary(*offset)) {
        return None;
    }
    if block.head().scheme != Scheme::CompressedHeap {
        return Some(block);
    }
    Block::open(encoded(&texts, Compression::None)?).ok()
}

fn encoded(texts: &TextValues, compression: Compression) -> Option<bytes::Bytes> {
    let strings: Vec<&[u8]> = texts.offsets.windows(2).map(|ends| &texts.bytes[ends[0]..ends[1]]).collect();
    let bits: Option<Vec<u8>> =
        texts.validity.as_ref().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
    blocks::encode_text(&strings, bits.as_deref().map(|bits| Bitmap::new(bits, 0)), compression).ok()
}
