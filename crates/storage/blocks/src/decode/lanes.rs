//! Decoding of vectors to lanes: offsets from the vector's base in the narrowest integer type that fits the block.

use std::ops::Range;

use crate::block_body::{Body, Packed, Runs};
use crate::block_header::lane_bits;
use crate::decode::unpack;
use crate::kernels::{Kernels, Lane};
use crate::{Block, Encoding, Result, VECTOR_ROWS};

/// Number of lanes filled at a time, by one or two vector stores.
const FILL_CHUNK: usize = 16;

/// Offsets of a vector. Lanes beyond the block's last row are undefined.
#[derive(Debug, Clone, Copy)]
pub enum Lanes<'a> {
    /// Lanes of a block whose `BlockHeader::lane_bits` is 8.
    U8(&'a [u8; VECTOR_ROWS]),
    /// Lanes of a block whose `BlockHeader::lane_bits` is 16.
    U16(&'a [u16; VECTOR_ROWS]),
    /// Lanes of a block whose `BlockHeader::lane_bits` is 32.
    U32(&'a [u32; VECTOR_ROWS]),
    /// Lanes of a block whose `BlockHeader::lane_bits` is 64.
    U64(&'a [u64; VECTOR_ROWS]),
}

/// Reusable buffer for the lanes of a vector, of each lane type.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct LanesBuffer {
    pub(crate) u64: [u64; VECTOR_ROWS],
    pub(crate) u32: [u32; VECTOR_ROWS],
    pub(crate) u16: [u16; VECTOR_ROWS],
    pub(crate) u8: [u8; VECTOR_ROWS],
    /// Buffer for the values of runs, allocated at first use.
    pub(crate) runs_buffer: Option<Box<RunsBuffer>>,
}

/// Reusable buffer for a vector of the runs' values.
#[derive(Debug, Clone)]
pub(crate) struct RunsBuffer {
    pub(crate) lanes: LanesBuffer,
    pub(crate) keys: [i64; VECTOR_ROWS],
}

impl LanesBuffer {
    /// Allocates a buffer on the heap (15 KB).
    pub fn new() -> Box<Self> {
        Box::new(Self::empty())
    }

    fn empty() -> Self {
        Self {
            u64: [0; VECTOR_ROWS],
            u32: [0; VECTOR_ROWS],
            u16: [0; VECTOR_ROWS],
            u8: [0; VECTOR_ROWS],
            runs_buffer: None,
        }
    }
}

/// Runs code with the buffer's lanes of the narrowest type that fits packed offsets of a width.
macro_rules! with_narrow {
    ($width:expr, $buffer:expr, $lanes:ident => $code:expr) => {
        match $width {
            0..=8 => {
                let $lanes = &mut $buffer.u8;
                $code
            }
            9..=16 => {
                let $lanes = &mut $buffer.u16;
                $code
            }
            17..=32 => {
                let $lanes = &mut $buffer.u32;
                $code
            }
            _ => {
                let $lanes = &mut $buffer.u64;
                $code
            }
        }
    };
}

impl Block {
    /// Unpacks a vector of a block of integers: each value is `Head::offset + Entry::base + lane`. If
    /// `BlockHeader::null_is_zero`, a lane of 0 is NULL; else [`Block::validity`] returns the NULLs.
    pub fn lanes<'a>(&self, vector: usize, buffer: &'a mut LanesBuffer) -> Result<Lanes<'a>> {
        let header = self.header();
        self.expect_kind(header.kind.is_integer() && header.encoding != Encoding::PlainWide)?;
        self.prefetch(self.prefetch_target(vector));
        if let Body::Packed(packed) = self.body() {
            let base = header.vector_headers[vector].base;
            let lanes = (header.lane_bits, lane_bits(header.width));
            match lanes {
                (8, _) => unpack(packed, vector, header.width, &mut buffer.u8),
                (16, 8) => unpack_from(packed, vector, header.width, &mut buffer.u8, &mut buffer.u16),
                (16, _) => unpack(packed, vector, header.width, &mut buffer.u16),
                (32, 8) => unpack_from(packed, vector, header.width, &mut buffer.u8, &mut buffer.u32),
                (32, 16) => unpack_from(packed, vector, header.width, &mut buffer.u16, &mut buffer.u32),
                (32, _) => unpack(packed, vector, header.width, &mut buffer.u32),
                (_, 8) => unpack_from(packed, vector, header.width, &mut buffer.u8, &mut buffer.u64),
                (_, 16) => unpack_from(packed, vector, header.width, &mut buffer.u16, &mut buffer.u64),
                (_, 32) => unpack_from(packed, vector, header.width, &mut buffer.u32, &mut buffer.u64),
                _ => unpack(packed, vector, header.width, &mut buffer.u64),
            }
            for (row, key) in packed.patches(header.vector_headers[vector].patches()) {
                buffer.put(header.lane_bits, row, key.wrapping_sub(base) as u64);
            }
        } else if let Body::Runs(runs) = self.body() {
            match header.lane_bits {
                8 => self.fill_runs(runs, vector, &mut buffer.runs_buffer, &mut buffer.u8),
                16 => self.fill_runs(runs, vector, &mut buffer.runs_buffer, &mut buffer.u16),
                32 => self.fill_runs(runs, vector, &mut buffer.runs_buffer, &mut buffer.u32),
                _ => self.fill_runs(runs, vector, &mut buffer.runs_buffer, &mut buffer.u64),
            }
        } else {
            let mut keys = [0; VECTOR_ROWS];
            self.keys(vector, buffer, &mut keys);
            buffer.narrow(header.lane_bits, &keys, header.vector_headers[vector].base);
        }
        Ok(buffer.lanes(header.lane_bits))
    }

    fn fill_runs<T: Lane>(
        &self,
        runs: &Runs,
        vector: usize,
        buffer: &mut Option<Box<RunsBuffer>>,
        lanes: &mut [T; VECTOR_ROWS],
    ) {
        let base = self.header().vector_headers[vector].base;
        self.for_each_run(runs, vector, buffer, |rows, key| {
            fill(lanes, rows, key.map_or_else(T::default, |key| T::truncate(key.wrapping_sub(base) as u64)));
        });
    }
}

/// Fills a range of rows, and possibly some after it, which the caller fills later. Most runs are short and take one
/// store.
pub(crate) fn fill<T: Copy>(lanes: &mut [T; VECTOR_ROWS], rows: Range<usize>, value: T) {
    for at in rows.step_by(FILL_CHUNK) {
        match lanes[at..].first_chunk_mut::<FILL_CHUNK>() {
            Some(lanes) => *lanes = [value; FILL_CHUNK],
            None => lanes[at..].fill(value),
        }
    }
}

impl RunsBuffer {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self { lanes: LanesBuffer::empty(), keys: [0; VECTOR_ROWS] })
    }
}

impl LanesBuffer {
    fn lanes(&self, lane: u8) -> Lanes<'_> {
        match lane {
            8 => Lanes::U8(&self.u8),
            16 => Lanes::U16(&self.u16),
            32 => Lanes::U32(&self.u32),
            _ => Lanes::U64(&self.u64),
        }
    }

    fn put(&mut self, lane: u8, row: usize, offset: u64) {
        match lane {
            8 => self.u8[row] = offset as u8,
            16 => self.u16[row] = offset as u16,
            32 => self.u32[row] = offset as u32,
            _ => self.u64[row] = offset,
        }
    }

    fn narrow(&mut self, lane: u8, keys: &[i64; VECTOR_ROWS], base: i64) {
        match lane {
            8 => Kernels::get().narrow(keys, base, &mut self.u8),
            16 => Kernels::get().narrow(keys, base, &mut self.u16),
            32 => Kernels::get().narrow(keys, base, &mut self.u32),
            _ => Kernels::get().narrow(keys, base, &mut self.u64),
        }
    }
}

/// Unpacks a vector whose packed offsets are narrower than the block's lanes, which must also fit the patches.
fn unpack_from<N: Lane, T: Lane>(
    packed: &Packed,
    vector: usize,
    width: u8,
    narrow: &mut [N; VECTOR_ROWS],
    lanes: &mut [T; VECTOR_ROWS],
) {
    unpack(packed, vector, width, narrow);
    for (lane, narrow) in lanes.iter_mut().zip(narrow.iter()) {
        *lane = T::truncate(narrow.extend());
    }
}
