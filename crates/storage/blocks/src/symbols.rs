//! Strings compressed by a table of symbols (FSST: Boncz, Neumann and Leis, VLDB 2020): each byte is the number of a symbol of up to
//! eight bytes, or says that the next one stands for itself. Each string is compressed for itself, by its block's table.

use bytes::Bytes;

use crate::body::check;
use crate::format::array;
use crate::{Error, Result};

/// Says that the next byte stands for itself.
const ESCAPE: u8 = 255;
/// The longest symbol.
const SYMBOL_BYTES: usize = 8;

/// A table of symbols, ready to decompress.
#[derive(Debug, Clone)]
pub(crate) struct Symbols {
    symbols: Box<[[u8; SYMBOL_BYTES]; 256]>,
    /// 0 of numbers without a symbol.
    lengths: Box<[u8; 256]>,
}

impl Symbols {
    /// Bytes that a table of so many symbols is stored in.
    pub(crate) fn stored_bytes(symbols: usize) -> usize {
        symbols * (SYMBOL_BYTES + 1)
    }

    /// As it is stored: the symbols, then their lengths.
    pub(crate) fn open(stored: &Bytes) -> Result<Self> {
        let count = stored.len() / (SYMBOL_BYTES + 1);
        check(count <= usize::from(ESCAPE), "more symbols than numbers")?;
        let (mut symbols, mut lengths) = (Box::new([[0; SYMBOL_BYTES]; 256]), Box::new([0; 256]));
        for number in 0..count {
            symbols[number] = array(stored, number * SYMBOL_BYTES);
            lengths[number] = stored[count * SYMBOL_BYTES + number];
            if !(1..=SYMBOL_BYTES as u8).contains(&lengths[number]) {
                return Err(Error::Damaged("the length of a symbol"));
            }
        }
        Ok(Self { symbols, lengths })
    }

    /// Writes a string at a place and returns where it ends. There has to be room for eight bytes for every compressed one, and
    /// eight more. Whatever the bytes are, they mean something: a number without a symbol is an empty string.
    pub(crate) fn decompress(&self, compressed: &[u8], room: &mut [u8], mut at: usize) -> usize {
        let mut numbers = compressed.iter();
        while let Some(number) = numbers.next() {
            if *number == ESCAPE {
                let Some(byte) = numbers.next() else { break };
                room[at] = *byte;
                at += 1;
            } else {
                room[at..at + SYMBOL_BYTES].copy_from_slice(&self.symbols[usize::from(*number)]);
                at += usize::from(self.lengths[usize::from(*number)]);
            }
        }
        at
    }

    /// The room that so many compressed bytes may need.
    pub(crate) fn room(compressed: usize) -> usize {
        (compressed + 1) * SYMBOL_BYTES
    }
}
