//! Compresses pages. Each thread has one compressor, whose tables are initialized once instead of for every page, and
//! one output buffer.

use std::cell::RefCell;

use parquet::errors::{ParquetError, Result};
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

use crate::writer::encodings::ZSTD_LEVEL;

/// Largest output buffer that is reused for the next page.
const REUSED_BUFFER_BYTES_MAX: usize = 8 << 20;

thread_local! {
    static COMPRESSOR: RefCell<(Option<Compressor<'static>>, Vec<u8>)> = const { RefCell::new((None, Vec::new())) };
}

/// Compresses a page with Zstandard.
pub(super) fn compress(page: &[u8]) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| ParquetError::External(Box::new(error));
    COMPRESSOR.with_borrow_mut(|(compressor, room)| {
        let compressor = match compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(ZSTD_LEVEL).map_err(failed)?),
        };
        room.clear();
        room.reserve(compress_bound(page.len()));
        compressor.compress_to_buffer(page, room).map_err(failed)?;
        let bytes = room.as_slice().to_vec();
        if REUSED_BUFFER_BYTES_MAX < room.capacity() {
            *room = Vec::new();
        }
        Ok(bytes)
    })
}
