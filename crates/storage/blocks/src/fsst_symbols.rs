//! String compression with a symbol table (FSST: Boncz, Neumann and Leis, VLDB 2020).
//!
//! Each compressed byte is the number of a symbol of up to eight bytes, or an escape before a literal byte. Each string
//! is compressed separately, with the symbol table of its block.

use bytes::Bytes;

use crate::block_body::ensure;
use crate::block_header::read_array;
use crate::{Error, Result};

/// Escape byte: the next byte is a literal.
const ESCAPE: u8 = 255;
/// Maximum length of a symbol, in bytes.
const SYMBOL_BYTES: usize = 8;

/// A symbol table for decompression.
#[derive(Debug, Clone)]
pub(crate) struct SymbolTable {
    symbols: Box<[[u8; SYMBOL_BYTES]; 256]>,
    /// Lengths of the symbols; 0 for unused numbers.
    lengths: Box<[u8; 256]>,
}

impl SymbolTable {
    /// Returns the stored size of a table of `symbols` symbols, in bytes.
    pub(crate) fn stored_bytes(symbols: usize) -> usize {
        symbols * (SYMBOL_BYTES + 1)
    }

    /// Reads a stored table: the symbols, then their lengths.
    pub(crate) fn open(stored: &Bytes) -> Result<Self> {
        let count = stored.len() / (SYMBOL_BYTES + 1);
        ensure(count <= usize::from(ESCAPE), "a symbol table has more than 255 symbols")?;
        let (mut symbols, mut lengths) = (Box::new([[0; SYMBOL_BYTES]; 256]), Box::new([0; 256]));
        for number in 0..count {
            symbols[number] = read_array(stored, number * SYMBOL_BYTES);
            lengths[number] = stored[count * SYMBOL_BYTES + number];
            if !(1..=SYMBOL_BYTES as u8).contains(&lengths[number]) {
                return Err(Error::Damaged("a symbol of the string compression table has an invalid length"));
            }
        }
        Ok(Self { symbols, lengths })
    }

    /// Decompresses a string to `out[at..]` and returns its end. `out` needs [`Self::decompressed_bytes_max`] bytes from `at`
    /// on. Any bytes are valid: an unused symbol number is an empty string.
    pub(crate) fn decompress(&self, compressed: &[u8], out: &mut [u8], mut at: usize) -> usize {
        let mut numbers = compressed.iter();
        while let Some(number) = numbers.next() {
            if *number == ESCAPE {
                let Some(byte) = numbers.next() else { break };
                out[at] = *byte;
                at += 1;
            } else {
                out[at..at + SYMBOL_BYTES].copy_from_slice(&self.symbols[usize::from(*number)]);
                at += usize::from(self.lengths[usize::from(*number)]);
            }
        }
        at
    }

    /// Returns the buffer size for decompressing `compressed` bytes: eight bytes for each, and eight more.
    pub(crate) fn decompressed_bytes_max(compressed: usize) -> usize {
        (compressed + 1) * SYMBOL_BYTES
    }
}
