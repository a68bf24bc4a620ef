//! Decoding of blocks: vectors of lanes for the engine (`lanes.rs`), values (`values.rs`) and strings (`text.rs`).

#[macro_use]
mod lanes;
mod text;
mod values;

pub use lanes::{Lanes, LanesBuffer};
pub use text::{TextBuffer, TextValues, TextVector};
pub use values::{BlockValue, Values};

use std::ops::Range;

use crate::block_body::{Body, Packed, Runs};
use crate::block_header::lane_bits;
use crate::decode::lanes::{RunsBuffer, fill};
use crate::float_encoding::{DecimalEncoding, f32_to_key, f64_to_key, key_to_f32, key_to_f64};
use crate::kernels::{Kernels, Lane, Word};
use crate::{Block, Mask, Result, VECTOR_ROWS, ValueKind, first_rows_mask, kernels};

/// A vector is unpacked entirely if more than one in this many rows is selected, else row by row: a row costs 8 ns, a
/// vector 200 to 300 ns.
pub(crate) const SPARSE_ROWS_RATIO: usize = 32;

/// Number of packed words to prefetch ahead.
const PREFETCHED_WORDS: usize = 32;
/// Maximum number of runs in a vector for which the runs' values are unpacked one by one.
const RUN_BY_RUN_MAX: usize = 64;

impl Block {
    /// Returns the mask of the rows of a vector that are not NULL.
    pub fn validity(&self, vector: usize, buffer: &mut LanesBuffer) -> Mask {
        let rows = self.header().rows_in_vector(vector);
        let entry = &self.header().vector_headers[vector];
        if entry.null_count == 0 {
            return first_rows_mask(rows);
        }
        if usize::from(entry.null_count) == rows {
            return Mask::default();
        }
        let mut mask = match self.body() {
            Body::Constant => first_rows_mask(if self.header().null_is_zero { 0 } else { rows }),
            Body::Packed(packed) => with_narrow!(self.header().width, buffer, lanes => {
                unpack(packed, vector, self.header().width, lanes);
                // All offsets but 0, which is NULL.
                Kernels::get().mask_between(lanes, Lane::truncate(1), Lane::truncate(u64::MAX - 1))
            }),
            Body::Runs(runs) => {
                let mut mask = Mask::default();
                self.for_each_run(runs, vector, &mut buffer.runs_buffer, |rows, key| {
                    if key.is_some() {
                        set_bits(&mut mask, rows);
                    }
                });
                mask
            }
            Body::Plain(plain) => plain.validity(vector),
            Body::Heap(heap) => heap.validity(vector),
        };
        for (word, bits) in mask.iter_mut().zip(first_rows_mask(rows)) {
            *word &= bits;
        }
        mask
    }

    /// Returns the key of a row; `None` if it is NULL.
    pub(crate) fn key(&self, row: usize) -> Option<i64> {
        let (vector, within) = (row / VECTOR_ROWS, row % VECTOR_ROWS);
        let entry = &self.header().vector_headers[vector];
        match self.body() {
            Body::Constant => (!self.header().null_is_zero).then_some(entry.min),
            Body::Packed(packed) => {
                if entry.patch_count != 0
                    && let Some(value) = packed.find_patch(entry.patches(), within)
                {
                    return Some(value);
                }
                let code = packed.unpack_one(vector, self.header().width, within);
                let is_null = self.header().null_is_zero && code == 0;
                (!is_null).then(|| self.decode_key(entry.base.wrapping_add(code as i64)))
            }
            Body::Runs(runs) => runs.values.key(runs.run_at(row)),
            Body::Heap(_) => None,
            Body::Plain(plain) => plain.is_valid(row).then(|| i64::from_le_bytes(plain.values(vector)[within])),
        }
    }

    /// Unpacks single rows of a vector and calls `each` with the row and its key (`None` if NULL).
    pub(crate) fn for_each_row(
        &self,
        vector: usize,
        rows: impl Iterator<Item = usize>,
        mut each: impl FnMut(usize, Option<i64>),
    ) {
        let header = self.header();
        let entry = &header.vector_headers[vector];
        let (Body::Packed(packed), 0) = (self.body(), entry.patch_count) else {
            return rows.for_each(|row| each(row, self.key(vector * VECTOR_ROWS + row)));
        };
        let (words, width) = (packed.words(vector), usize::from(header.width));
        let each_code = |row, code: u64| {
            let is_null = header.null_is_zero && code == 0;
            each(row, (!is_null).then(|| self.decode_key(entry.base.wrapping_add(code as i64))));
        };
        match lane_bits(header.width) {
            8 => for_each_offset::<u8>(words, width, rows, each_code),
            16 => for_each_offset::<u16>(words, width, rows, each_code),
            32 => for_each_offset::<u32>(words, width, rows, each_code),
            _ => for_each_offset::<u64>(words, width, rows, each_code),
        }
    }

    /// Decodes the keys of a vector; those of NULLs are undefined.
    pub(crate) fn keys(&self, vector: usize, buffer: &mut LanesBuffer, keys: &mut [i64; VECTOR_ROWS]) {
        let entry = &self.header().vector_headers[vector];
        match self.body() {
            Body::Constant => keys.fill(entry.min),
            Body::Packed(packed) => {
                self.packed_numbers(packed, vector, buffer, keys);
                if let Some(exponents) = self.header().decimal_exponents {
                    let decimals = DecimalEncoding::new(exponents);
                    for key in keys.iter_mut() {
                        *key = key_of_float(self.header().kind, decimals.decode(*key));
                    }
                }
                for (row, value) in packed.patches(entry.patches()) {
                    keys[row] = value;
                }
            }
            Body::Heap(_) => {}
            Body::Runs(runs) => {
                self.for_each_run(runs, vector, &mut buffer.runs_buffer, |rows, key| {
                    fill(keys, rows, key.unwrap_or(entry.base));
                });
            }
            Body::Plain(plain) => {
                for (key, bytes) in keys.iter_mut().zip(plain.values(vector)) {
                    *key = i64::from_le_bytes(*bytes);
                }
            }
        }
    }

    /// Calls `each` with the rows and the key of each run in a vector. If there are many, entire vectors of the runs'
    /// values are unpacked.
    pub(crate) fn for_each_run(
        &self,
        runs: &Runs,
        vector: usize,
        buffer: &mut Option<Box<RunsBuffer>>,
        mut each: impl FnMut(Range<usize>, Option<i64>),
    ) {
        let first = vector * VECTOR_ROWS;
        let rows = self.header().rows_in_vector(vector);
        let (first_run, behind) = (runs.run_at(first), runs.run_at(first + rows - 1) + 1);
        let mut start = 0;
        let mut next = |run: usize, key: Option<i64>| {
            let end = rows.min(runs.end(run + 1) - first);
            each(start..end, key);
            start = end;
        };
        for of_runs in first_run / VECTOR_ROWS..=(behind - 1) / VECTOR_ROWS {
            let base = of_runs * VECTOR_ROWS;
            let within = first_run.max(base) - base..behind.min(base + VECTOR_ROWS) - base;
            if within.len() <= RUN_BY_RUN_MAX {
                runs.values.for_each_row(of_runs, within, |run, key| next(base + run, key));
                continue;
            }
            let RunsBuffer { lanes, keys } = &mut **buffer.get_or_insert_with(RunsBuffer::new);
            runs.values.keys(of_runs, lanes, keys);
            let validity = runs.values.validity(of_runs, lanes);
            for run in within {
                let is_valid = validity[run / 64] >> (run % 64) & 1 == 1;
                next(base + run, is_valid.then(|| keys[run]));
            }
        }
    }

    /// Returns the vector to prefetch while `vector` is processed, about 4 KB ahead.
    pub(crate) fn prefetch_target(&self, vector: usize) -> usize {
        vector + (PREFETCHED_WORDS / usize::from(self.header().width).max(1)).max(1)
    }

    /// Prefetches a packed vector, if it exists.
    pub(crate) fn prefetch(&self, vector: usize) {
        if let Body::Packed(packed) = self.body()
            && vector < self.header().vector_count()
        {
            kernels::prefetch(packed.words(vector));
        }
    }

    /// Returns the key that a packed number represents.
    pub(crate) fn decode_key(&self, packed: i64) -> i64 {
        match self.header().decimal_exponents {
            None => packed,
            Some(exponents) => key_of_float(self.header().kind, DecimalEncoding::new(exponents).decode(packed)),
        }
    }

    /// Decodes the numbers of a vector of a block of floats; those of NULLs are undefined.
    pub fn floats(&self, vector: usize, buffer: &mut LanesBuffer, numbers: &mut [f64; VECTOR_ROWS]) -> Result<()> {
        self.expect_kind(self.header().kind.is_float())?;
        self.prefetch(self.prefetch_target(vector));
        if self.header().kind == ValueKind::Float32 {
            self.decode_floats(
                vector,
                buffer,
                numbers,
                |key| key_to_f32(key).into(),
                |number| f64::from(number as f32),
            );
        } else {
            self.decode_floats(vector, buffer, numbers, key_to_f64, |number| number);
        }
        Ok(())
    }

    /// Decodes floats: `value` converts a key to a number, `rounded` rounds a decoded decimal to the block's precision.
    fn decode_floats(
        &self,
        vector: usize,
        buffer: &mut LanesBuffer,
        numbers: &mut [f64; VECTOR_ROWS],
        value: impl Fn(i64) -> f64,
        rounded: impl Fn(f64) -> f64,
    ) {
        let mut packed = [0; VECTOR_ROWS];
        let (Some(exponents), Body::Packed(body)) = (self.header().decimal_exponents, self.body()) else {
            self.keys(vector, buffer, &mut packed);
            for (number, key) in numbers.iter_mut().zip(&packed) {
                *number = value(*key);
            }
            return;
        };
        self.packed_numbers(body, vector, buffer, &mut packed);
        Kernels::get().decode_decimals(&packed, DecimalEncoding::new(exponents), numbers);
        numbers.iter_mut().for_each(|number| *number = rounded(*number));
        for (row, key) in body.patches(self.header().vector_headers[vector].patches()) {
            numbers[row] = value(key);
        }
    }

    /// Unpacks the numbers of a vector without its patches.
    fn packed_numbers(
        &self,
        packed: &Packed,
        vector: usize,
        buffer: &mut LanesBuffer,
        numbers: &mut [i64; VECTOR_ROWS],
    ) {
        with_narrow!(self.header().width, buffer, lanes => {
            unpack(packed, vector, self.header().width, lanes);
            Kernels::get().widen(lanes, self.header().vector_headers[vector].base, numbers);
        });
    }
}

/// Calls `each` with rows of a packed vector and their packed offsets.
fn for_each_offset<T: Lane>(
    words: &[Word],
    width: usize,
    rows: impl Iterator<Item = usize>,
    mut each: impl FnMut(usize, u64),
) {
    rows.for_each(|row| each(row, T::unpack_one(words, width, row).extend()));
}

/// Returns the key of a number in a block of floats.
fn key_of_float(kind: ValueKind, value: f64) -> i64 {
    if kind == ValueKind::Float32 { f32_to_key(value as f32) } else { f64_to_key(value) }
}

impl Packed {
    /// Returns the packed offset of one row.
    pub(crate) fn unpack_one(&self, vector: usize, width: u8, row: usize) -> u64 {
        let (words, bits) = (self.words(vector), usize::from(width));
        match width {
            0..=8 => u8::unpack_one(words, bits, row).into(),
            9..=16 => u16::unpack_one(words, bits, row).into(),
            17..=32 => u32::unpack_one(words, bits, row).into(),
            _ => u64::unpack_one(words, bits, row),
        }
    }
}

/// Unpacks the offsets of a vector without its patches.
pub(crate) fn unpack<T: Lane>(packed: &Packed, vector: usize, width: u8, lanes: &mut [T; VECTOR_ROWS]) {
    Kernels::get().unpack(packed.words(vector), width.into(), lanes);
}

/// Sets a range of bits of a mask.
pub(crate) fn set_bits(mask: &mut Mask, rows: Range<usize>) {
    if rows.is_empty() {
        return;
    }
    let (first, last) = (rows.start / 64, (rows.end - 1) / 64);
    let head = u64::MAX << (rows.start % 64);
    let tail = u64::MAX >> (63 - (rows.end - 1) % 64);
    if first == last {
        mask[first] |= head & tail;
        return;
    }
    mask[first] |= head;
    mask[first + 1..last].fill(u64::MAX);
    mask[last] |= tail;
}
