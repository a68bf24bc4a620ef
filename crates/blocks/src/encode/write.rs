//! Keys and a plan to bytes.

use bytes::Bytes;

use crate::encode::choose::Plan;
use crate::encode::encode_run_values;
use crate::encode::keys::Keys;
use crate::encode::statistics::{Statistics, bits_of};
use crate::format::{ALIGNMENT, aligned};
use crate::kernels::{Kernels, Lane, Word};
use crate::{Entry, Head, Kind, Mask, Scheme, VECTOR_ROWS};

/// A block as it grows: its body behind room for its head, at a place in memory that kernels like.
pub(crate) struct BodyWriter {
    /// The block begins at `start`.
    bytes: Vec<u8>,
    start: usize,
}

impl BodyWriter {
    /// `body` bytes are to be expected.
    pub(crate) fn new(rows: usize, body: usize) -> Self {
        let mut bytes: Vec<u8> = Vec::with_capacity(Head::bytes(rows) + body + 2 * ALIGNMENT);
        let start = bytes.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        bytes.resize(start + Head::bytes(rows), 0);
        Self { bytes, start }
    }

    /// A section of zeros, at an aligned place, to be written.
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        if bytes != 0 {
            self.bytes.resize(self.start + aligned(self.bytes.len() - self.start) + bytes, 0);
        }
        let end = self.bytes.len();
        &mut self.bytes[end - bytes..]
    }

    /// A section.
    pub(crate) fn section(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// Writes the head.
    pub(crate) fn finish(mut self, mut head: Head) -> Bytes {
        head.length = self.bytes.len() - self.start;
        head.write(&mut self.bytes[self.start..]);
        if self.bytes[self.start..].as_ptr().align_offset(ALIGNMENT) == 0 {
            return Bytes::from(self.bytes).slice(self.start..);
        }
        // It grew beyond what was expected, and was moved.
        let mut moved = Self::new(0, head.length);
        moved.bytes.truncate(moved.start);
        moved.bytes.extend_from_slice(&self.bytes[self.start..]);
        Bytes::from(moved.bytes).slice(moved.start..)
    }
}

/// The head that every scheme begins with.
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

/// Writes keys as planned.
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
            match lane_of(width) {
                8 => write_packed::<u8>(keys, &mut head, &mut body),
                16 => write_packed::<u16>(keys, &mut head, &mut body),
                32 => write_packed::<u32>(keys, &mut head, &mut body),
                _ => write_packed::<u64>(keys, &mut head, &mut body),
            }
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

/// The narrowest lane of so many bits.
pub(crate) fn lane_of(width: u8) -> u8 {
    width.next_power_of_two().max(8)
}

/// A bitmap as it is stored.
pub(crate) fn bitmap_bytes(masks: &[Mask]) -> Vec<u8> {
    masks.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

fn write_packed<T: Lane>(keys: &Keys<'_>, head: &mut Head, body: &mut BodyWriter) {
    let kernels = Kernels::get();
    let width = usize::from(head.width);
    let words: &mut [Word] = body.room(head.entries.len() * width * size_of::<Word>()).as_chunks_mut().0;
    let mut patches = Patches::default();
    for (vector, (values, mask)) in keys.vectors().enumerate() {
        let entry = &mut head.entries[vector];
        let mut padded = [entry.base; VECTOR_ROWS];
        padded[..values.len()].copy_from_slice(values);
        let mut lanes = [T::default(); VECTOR_ROWS];
        kernels.narrow(&padded, entry.base, &mut lanes);
        if head.null_is_zero && entry.nulls != 0 {
            for (row, lane) in lanes[..values.len()].iter_mut().enumerate() {
                if mask[row / 64] >> (row % 64) & 1 == 0 {
                    *lane = T::default();
                }
            }
        }
        patches.find(entry, &padded[..values.len()], &mask, head.width, head.null_is_zero, |row, code| {
            lanes[row] = T::truncate(code);
        });
        kernels.pack(&lanes, width, &mut words[vector * width..][..width]);
    }
    head.parts = patches.rows.len();
    body.section(&patches.values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>());
    body.section(&patches.rows.iter().flat_map(|row| row.to_le_bytes()).collect::<Vec<_>>());
}

#[derive(Default)]
struct Patches {
    values: Vec<i64>,
    rows: Vec<u16>,
}

impl Patches {
    /// Takes out what does not fit; in its place stands the least offset that is not NULL.
    fn find(
        &mut self,
        entry: &mut Entry,
        values: &[i64],
        mask: &Mask,
        width: u8,
        null_is_zero: bool,
        mut replace: impl FnMut(usize, u64),
    ) {
        entry.first_patch = self.rows.len() as u32;
        if bits_of(entry.max.wrapping_sub(entry.base) as u64) <= width || usize::from(entry.nulls) == values.len() {
            return;
        }
        for (row, value) in values.iter().enumerate() {
            let is_valid = mask[row / 64] >> (row % 64) & 1 == 1;
            if is_valid && width < bits_of(value.wrapping_sub(entry.base) as u64) {
                self.values.push(*value);
                self.rows.push(row as u16);
                replace(row, null_is_zero.into());
            }
        }
        entry.patches = (self.rows.len() - entry.first_patch as usize) as u16;
    }
}

fn write_runs(keys: &Keys<'_>, head: &mut Head, body: &mut BodyWriter) {
    let (mut lasts, mut values, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for (row, value) in keys.values().iter().enumerate() {
        let is_valid = keys.is_valid(row);
        let goes_on = match (values.last(), valid.last()) {
            (Some(before), Some(was_valid)) => *was_valid == is_valid && (!is_valid || before == value),
            _ => false,
        };
        if goes_on {
            *lasts.last_mut().expect("a run goes on") = row as u16;
        } else {
            lasts.push(row as u16);
            values.push(*value);
            valid.push(is_valid);
        }
    }
    let masks = valid.chunks(VECTOR_ROWS).map(|valid| {
        let mut mask = Mask::default();
        for (run, is_valid) in valid.iter().enumerate() {
            mask[run / 64] |= u64::from(*is_valid) << (run % 64);
        }
        mask
    });
    head.parts = values.len();
    body.section(&lasts.iter().flat_map(|last| last.to_le_bytes()).collect::<Vec<_>>());
    let keys = Keys::with_masks(&values, masks.collect());
    body.section(&encode_run_values(head.kind, head.offset, &keys));
}
