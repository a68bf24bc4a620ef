//! Vectors as lanes: offsets from the vector's base in the narrowest integers that hold all of the block's.

use crate::body::Body;
use crate::decode::unpack;
use crate::kernels::{Kernels, Lane};
use crate::{Block, Error, Result, VECTOR_ROWS};

/// The offsets of a vector. Lanes behind the block's last row are anything.
#[derive(Debug, Clone, Copy)]
pub enum Lanes<'a> {
    /// Where `Head::lane` is 8.
    U8(&'a [u8; VECTOR_ROWS]),
    /// Where it is 16.
    U16(&'a [u16; VECTOR_ROWS]),
    /// Where it is 32.
    U32(&'a [u32; VECTOR_ROWS]),
    /// Where it is 64.
    U64(&'a [u64; VECTOR_ROWS]),
}

/// Room for a vector of lanes of each type, so that a worker allocates once.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct LanesBuffer {
    pub(crate) u64: [u64; VECTOR_ROWS],
    pub(crate) u32: [u32; VECTOR_ROWS],
    pub(crate) u16: [u16; VECTOR_ROWS],
    pub(crate) u8: [u8; VECTOR_ROWS],
}

impl LanesBuffer {
    /// Room on the heap: it is 15 KB.
    pub fn new() -> Box<Self> {
        Box::new(Self { u64: [0; VECTOR_ROWS], u32: [0; VECTOR_ROWS], u16: [0; VECTOR_ROWS], u8: [0; VECTOR_ROWS] })
    }
}

/// Runs code on the buffer's lanes that hold packed offsets of a width.
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
    /// Unpacks a vector of a block of integers: each value is `Head::offset` + `Entry::base` + its lane. Lane 0 is NULL where
    /// `Head::null_is_zero`; elsewhere `validity` tells.
    pub fn lanes<'a>(&self, vector: usize, buffer: &'a mut LanesBuffer) -> Result<Lanes<'a>> {
        self.expect_kind(self.head().kind.is_integer())?;
        self.prefetch(vector + 1);
        match self.head().lane {
            8 => self.fill(vector, &mut buffer.u8)?,
            16 if self.head().width <= 8 => self.fill_from::<_, u8>(vector, &mut buffer.u16, &mut buffer.u8)?,
            16 => self.fill(vector, &mut buffer.u16)?,
            32 if self.head().width <= 8 => self.fill_from::<_, u8>(vector, &mut buffer.u32, &mut buffer.u8)?,
            32 if self.head().width <= 16 => self.fill_from::<_, u16>(vector, &mut buffer.u32, &mut buffer.u16)?,
            32 => self.fill(vector, &mut buffer.u32)?,
            _ if self.head().width <= 8 => self.fill_from::<_, u8>(vector, &mut buffer.u64, &mut buffer.u8)?,
            _ if self.head().width <= 16 => self.fill_from::<_, u16>(vector, &mut buffer.u64, &mut buffer.u16)?,
            _ if self.head().width <= 32 => self.fill_from::<_, u32>(vector, &mut buffer.u64, &mut buffer.u32)?,
            _ => self.fill(vector, &mut buffer.u64)?,
        }
        Ok(match self.head().lane {
            8 => Lanes::U8(&buffer.u8),
            16 => Lanes::U16(&buffer.u16),
            32 => Lanes::U32(&buffer.u32),
            _ => Lanes::U64(&buffer.u64),
        })
    }

    /// Packed offsets are unpacked where they are wanted.
    fn fill<T: Lane>(&self, vector: usize, lanes: &mut [T; VECTOR_ROWS]) -> Result<()> {
        if let Body::Packed(packed) = self.body() {
            unpack(packed, vector, self.head().width, lanes);
        }
        self.complete(vector, lanes)
    }

    /// Packed offsets are narrower than what the patches need.
    fn fill_from<T: Lane, N: Lane>(
        &self,
        vector: usize,
        lanes: &mut [T; VECTOR_ROWS],
        narrow: &mut [N; VECTOR_ROWS],
    ) -> Result<()> {
        if let Body::Packed(packed) = self.body() {
            unpack(packed, vector, self.head().width, narrow);
            for (lane, narrow) in lanes.iter_mut().zip(narrow.iter()) {
                *lane = T::truncate(narrow.extend());
            }
        }
        self.complete(vector, lanes)
    }

    /// What is not unpacked.
    fn complete<T: Lane>(&self, vector: usize, lanes: &mut [T; VECTOR_ROWS]) -> Result<()> {
        let entry = &self.head().entries[vector];
        let offset = |key: i64| T::truncate(key.wrapping_sub(entry.base) as u64);
        match self.body() {
            Body::Constant => lanes.fill(T::default()),
            Body::Packed(packed) => {
                for (row, value) in packed.patches(entry.patches()) {
                    lanes[row] = offset(value);
                }
            }
            Body::Runs(runs) => {
                for (run, rows) in runs.in_vector(vector, self.head().rows_in(vector)) {
                    lanes[rows].fill(runs.values.key(run).map_or_else(T::default, offset));
                }
            }
            Body::Plain(plain) if self.head().scheme == crate::Scheme::Plain => {
                let mut keys = [entry.base; VECTOR_ROWS];
                for (key, bytes) in keys.iter_mut().zip(plain.values(vector)) {
                    *key = i64::from_le_bytes(*bytes);
                }
                Kernels::get().narrow(&keys, entry.base, lanes);
            }
            Body::Plain(_) | Body::Heap(_) => return Err(Error::Kind),
        }
        Ok(())
    }
}
