//! Compression (FSST) of blocks of long strings on disk: the disk holds more of them and reads them faster. In memory
//! they stay uncompressed, because searching compressed strings takes eleven times as long (`docs/internals/reports`).

use std::borrow::Cow;

use blocks::{Block, Compression, Encoding, TextValues, ValidityBitmap};

/// Average length in bytes from which on strings are compressed.
const COMPRESSED_STRING_BYTES_MIN: usize = 16;

/// Returns the bytes to store for a block of strings; `None` if the block cannot be read.
pub(super) fn compress(block: &Block) -> Option<Cow<'_, [u8]>> {
    if block.bytes().len() < block.header().rows * COMPRESSED_STRING_BYTES_MIN {
        return Some(Cow::Borrowed(block.bytes()));
    }
    let bytes = encode_strings(&block.read_text().ok()?, Compression::Symbols)?;
    Some(Cow::Owned(bytes.into()))
}

/// Decompresses a stored block of strings; `None` if strings are not valid UTF-8, which readers rely on.
pub(super) fn decompress(block: Block) -> Option<Block> {
    let texts = block.read_text().ok()?;
    let all = str::from_utf8(&texts.bytes).ok()?;
    if !texts.offsets.iter().all(|offset| all.is_char_boundary(*offset)) {
        return None;
    }
    if block.header().encoding != Encoding::CompressedHeap {
        return Some(block);
    }
    Block::open(encode_strings(&texts, Compression::None)?).ok()
}

/// Encodes strings as a block.
fn encode_strings(texts: &TextValues, compression: Compression) -> Option<bytes::Bytes> {
    let strings: Vec<&[u8]> = texts.offsets.windows(2).map(|ends| &texts.bytes[ends[0]..ends[1]]).collect();
    let bits: Option<Vec<u8>> =
        texts.validity.as_ref().map(|words| words.iter().flat_map(|word| word.to_le_bytes()).collect());
    blocks::encode_text(&strings, bits.as_deref().map(|bits| ValidityBitmap::new(bits, 0)), compression).ok()
}
