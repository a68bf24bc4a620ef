//! Writing of blocks in the chosen encoding.

use bytes::Bytes;

use crate::encode::choose::Plan;
use crate::encode::encode_run_values;
use crate::encode::keys::{Keys, nulls_of};
use crate::encode::statistics::{Statistics, bits_of};
use crate::format::{ALIGNMENT, aligned, lane_of};
use crate::kernels::{Kernels, Lane, Word};
use crate::row_set::positions;
use crate::{Head, Kind, Mask, Scheme, VECTOR_ROWS};

/// Writer of a block's sections, in memory that is aligned for kernels and has space for the header in front.
pub(crate) struct BodyWriter {
    /// Buffer; the block starts at `start`.
    bytes: Vec<u8>,
    start: usize,
}

impl BodyWriter {
    /// Creates a writer with memory reserved for a body of `body` bytes.
    pub(crate) fn new(rows: usize, body: usize) -> Self {
        let mut bytes: Vec<u8> = Vec::with_capacity(Head::bytes(rows) + body + 2 * ALIGNMENT);
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        bytes.resize(start + Head::bytes(rows), 0);
        Self { bytes, start }
    }

    /// Appends an aligned section of zeros and returns it for writing.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if bytes != 0 {
            self.bytes.resize(self.start + aligned(self.bytes.len() - self.start) + bytes, 0);
        }
        let end = self.bytes.len();
        &mut self.bytes[end - bytes..]
    }

    /// Appends an aligned section.
    pub(crate) fn section(&mut self, bytes: &[u8]) {
        self.section_of([bytes]);
    }

    /// Appends an aligned section of concatenated parts.
    pub(crate) fn section_of<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>) {
        let unaligned = self.bytes.len();
        self.bytes.resize(self.start + aligned(unaligned - self.start), 0);
        let begin = self.bytes.len();
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        if self.bytes.len() == begin {
            // An empty section needs no padding.
            self.bytes.truncate(unaligned);
        }
    }

    /// Writes the header and returns the block.
    pub(crate) fn finish(mut self, mut head: Head) -> Bytes {
        head.length = self.bytes.len() - self.start;
        head.write(&mut self.bytes[self.start..]);
        if self.bytes[self.start..].as_ptr().align_offset(ALIGNMENT) == 0 {
            return Bytes::from(self.bytes).slice(self.start..);
        }
        // The buffer was reallocated and has lost its alignment.
        let mut moved = Self::new(0, head.length);
        moved.bytes.truncate(moved.start);
        moved.bytes.extend_from_slice(&self.bytes[self.start..]);
        Bytes::from(moved.bytes).slice(moved.start..)
    }
}

/// Returns the header from which every encoding starts.
pub(crate) fn head(kind: Kind, offset: i128, rows: usize, nulls: usize) -> Head {
    Head {
        kind,
        scheme: Scheme::Constant,
        rows,
        nulls,
        null_is_zero: false,
        has_bitmap: false,
        lane: 8,
        width: 0,
        decimal: None,
        parts: 0,
        min: 0,
        max: 0,
        offset,
        length: 0,
        entries: Vec::new(),
    }
}

/// Writes keys in the encoding `plan`.
pub(crate) fn write(kind: Kind, offset: i128, keys: &Keys<'_>, statistics: &Statistics, plan: Plan) -> Bytes {
    let mut head = head(kind, offset, keys.rows(), keys.nulls());
    head.entries = statistics.entries.clone();
    let (min, max) = statistics.bounds.unwrap_or_default();
    (head.min, head.max) = (i128::from(min) + offset, i128::from(max) + offset);
    head.null_is_zero = keys.nulls() != 0 && statistics.width.is_some();
    head.lane = lane_of(statistics.width.unwrap_or(64));
    let expected = match plan {
        Plan::Constant => 0,
        Plan::Packed { width } => usize::from(width) * head.entries.len() * size_of::<Word>(),
        Plan::Runs => statistics.runs * 10,
        Plan::Plain => keys.rows() * 8 + keys.rows() / 8,
    };
    let mut body = BodyWriter::new(keys.rows(), expected);
    match plan {
        Plan::Constant => {}
        Plan::Packed { width } => {
            head.scheme = Scheme::Packed;
            head.width = width;
            let bases = head.entries.iter().map(|entry| (entry.base, entry.max)).collect();
            let patch_keys = keys.values();
            let numbers = Keys::clone(keys);
            Packing { numbers, bases, width, patch_keys, exceptions: None }.write(&mut head, &mut body);
        }
        Plan::Runs => {
            head.scheme = Scheme::Runs;
            write_runs(keys, &mut head, &mut body);
        }
        Plan::Plain => {
            head.scheme = Scheme::Plain;
            head.has_bitmap = keys.validity().is_some();
            body.section(&bitmap_bytes(keys.validity().unwrap_or_default()));
            let values: Vec<u8> = keys.values().iter().flat_map(|value| value.to_le_bytes()).collect();
            body.section(&values);
        }
    }
    body.finish(head)
}

/// Returns the stored form of a validity bitmap.
pub(crate) fn bitmap_bytes(masks: &[Mask]) -> Vec<u8> {
    masks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

/// Writes floats as decimal digits.
pub(crate) fn write_packing(
    kind: Kind,
    keys: &Keys<'_>,
    statistics: &Statistics,
    packing: &Packing<'_>,
    exponents: (u8, u8),
) -> Bytes {
    let mut head = head(kind, 0, keys.rows(), keys.nulls());
    head.entries = statistics.entries.clone();
    let (min, max) = statistics.bounds.unwrap_or_default();
    (head.min, head.max) = (min.into(), max.into());
    (head.scheme, head.decimal) = (Scheme::Packed, Some(exponents));
    (head.width, head.lane) = (packing.width, lane_of(packing.width));
    head.null_is_zero = keys.nulls() != 0;
    let mut body = BodyWriter::new(keys.rows(), usize::from(packing.width) * head.entries.len() * size_of::<Word>());
    packing.write(&mut head, &mut body);
    body.finish(head)
}

/// Numbers to pack: a block's keys, or their decimal digits.
pub(crate) struct Packing<'a> {
    pub(crate) numbers: Keys<'a>,
    /// Base and maximum of each vector.
    pub(crate) bases: Vec<(i64, i64)>,
    pub(crate) width: u8,
    /// Keys to store in patches, by row.
    pub(crate) patch_keys: &'a [i64],
    /// Masks of the rows that must be patches, by vector.
    pub(crate) exceptions: Option<&'a [Mask]>,
}

impl Packing<'_> {
    fn write(&self, head: &mut Head, body: &mut BodyWriter) {
        head.width = self.width;
        match lane_of(self.width) {
            8 => self.write_lanes::<u8>(head, body),
            16 => self.write_lanes::<u16>(head, body),
            32 => self.write_lanes::<u32>(head, body),
            _ => self.write_lanes::<u64>(head, body),
        }
    }

    fn write_lanes<T: Lane>(&self, head: &mut Head, body: &mut BodyWriter) {
        let kernels = Kernels::get();
        let width = usize::from(self.width);
        let words = body.room(head.entries.len() * width * size_of::<Word>());
        let words: &mut [Word] = words.as_chunks_mut().0;
        let mut patches = Patches::default();
        for (vector, (numbers, mask)) in self.numbers.vectors().enumerate() {
            let entry = &mut head.entries[vector];
            entry.base = self.bases[vector].0;
            let mut padded = [entry.base; VECTOR_ROWS];
            padded[..numbers.len()].copy_from_slice(numbers);
            let mut lanes = [T::default(); VECTOR_ROWS];
            kernels.narrow(&padded, entry.base, &mut lanes);
            let patched = self.patched(vector, &padded, &mask);
            entry.first_patch = patches.rows.len() as u32;
            for row in positions(&patched) {
                // Patches get the least offset that is not NULL.
                lanes[row] = T::truncate(head.null_is_zero.into());
                patches.keys.push(self.patch_keys[vector * VECTOR_ROWS + row]);
                patches.rows.push(row as u16);
            }
            entry.patches = (patches.rows.len() - entry.first_patch as usize) as u16;
            if entry.nulls != 0 {
                nulls_of(&mask, numbers.len()).for_each(|row| lanes[row] = T::default());
            }
            kernels.pack(&lanes, width, &mut words[vector * width..][..width]);
        }
        head.parts = patches.rows.len();
        body.section(&patches.keys.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<_>>());
        body.section(&patches.rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>());
    }

    /// Returns the mask of the rows of a vector that must be patches.
    fn patched(&self, vector: usize, numbers: &[i64; VECTOR_ROWS], valid: &Mask) -> Mask {
        let mut mask = self.exceptions.map_or_else(Mask::default, |exceptions| exceptions[vector]);
        let (base, max) = self.bases[vector];
        if self.width < bits_of(max.wrapping_sub(base) as u64) {
            let mut lanes = [0; VECTOR_ROWS];
            Kernels::get().narrow(numbers, base, &mut lanes);
            let beyond = Kernels::get().between(&lanes, 1 << self.width, u64::MAX - (1 << self.width));
            for ((word, beyond), valid) in mask.iter_mut().zip(beyond).zip(valid) {
                *word |= beyond & valid;
            }
        }
        mask
    }
}

#[derive(Default)]
struct Patches {
    keys: Vec<i64>,
    rows: Vec<u16>,
}

fn write_runs(keys: &Keys<'_>, head: &mut Head, body: &mut BodyWriter) {
    let (mut lasts, mut values, mut masks) = (Vec::new(), Vec::new(), vec![]);
    let all = keys.values();
    let mut start = 0;
    while start < all.len() {
        let is_valid = keys.is_valid(start);
        let goes_on = |row: &usize| match (keys.is_valid(*row), is_valid) {
            (true, true) => all[*row] == all[start],
            (next, this) => next == this,
        };
        let end = (start + 1..all.len()).find(|row| !goes_on(row)).unwrap_or(all.len());
        let run = values.len();
        if run % VECTOR_ROWS == 0 {
            masks.push(Mask::default());
        }
        masks[run / VECTOR_ROWS][run % VECTOR_ROWS / 64] |= u64::from(is_valid) << (run % 64);
        lasts.extend_from_slice(&((end - 1) as u16).to_le_bytes());
        values.push(all[start]);
        start = end;
    }
    head.parts = values.len();
    body.section(&lasts);
    body.section(&encode_run_values(head.kind, head.offset, &Keys::with_masks(&values, masks)));
}
