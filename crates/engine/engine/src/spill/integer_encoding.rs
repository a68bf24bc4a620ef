//! Encoding of integers by frame of reference: distances from the minimum, in as many bytes as the largest distance
//! needs.

use crate::{Error, Result};

/// Maximum number of rows that are encoded together.
pub(super) const ROWS_MAX: usize = 1 << 22;

/// Possible widths of distances, in bytes.
const BYTE_WIDTHS: [usize; 5] = [0, 1, 2, 4, 8];

/// Appends integers: the minimum, the width, then the distances.
pub(super) fn put_numbers(bytes: &mut Vec<u8>, values: &[i64]) {
    let (min, max) = values.iter().fold((i64::MAX, i64::MIN), |(min, max), value| (min.min(*value), max.max(*value)));
    let span = if values.is_empty() { 0 } else { max.wrapping_sub(min).cast_unsigned() };
    let needed = (64 - span.leading_zeros()).div_ceil(8) as usize;
    let width = BYTE_WIDTHS.into_iter().find(|width| needed <= *width).unwrap_or(8);
    bytes.extend_from_slice(&min.to_le_bytes());
    bytes.push(width as u8);
    bytes.reserve(width * values.len());
    let distances = values.iter().map(|value| value.wrapping_sub(min).cast_unsigned());
    match width {
        0 => {}
        1 => bytes.extend(distances.map(|distance| distance as u8)),
        2 => distances.for_each(|distance| bytes.extend_from_slice(&(distance as u16).to_le_bytes())),
        4 => distances.for_each(|distance| bytes.extend_from_slice(&(distance as u32).to_le_bytes())),
        _ => distances.for_each(|distance| bytes.extend_from_slice(&distance.to_le_bytes())),
    }
}

/// Appends a count.
pub(super) fn put_count(bytes: &mut Vec<u8>, count: usize) {
    bytes.extend_from_slice(&(count as u64).to_le_bytes());
}

/// Reader of encoded rows.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// Reads `count` bytes.
    pub(super) fn read_bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DAMAGED_ERROR)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn read_byte(&mut self) -> Result<u8> {
        Ok(self.read_bytes(1)?[0])
    }

    /// Reads `count` items of `N` bytes each.
    pub(super) fn read_items<const N: usize>(&mut self, count: usize) -> Result<impl Iterator<Item = [u8; N]> + 'a> {
        let taken = self.read_bytes(count.checked_mul(N).ok_or(DAMAGED_ERROR)?)?;
        Ok(taken.chunks_exact(N).map(|item| item.try_into().expect("chunks of N bytes")))
    }

    pub(super) fn read_word(&mut self) -> Result<u64> {
        let mut words = self.read_items::<8>(1)?;
        words.next().map(u64::from_le_bytes).ok_or(DAMAGED_ERROR)
    }

    /// Reads a count; fails if it exceeds [`ROWS_MAX`], so that damaged bytes do not allocate too much memory.
    pub(super) fn read_count(&mut self) -> Result<usize> {
        let count = self.read_word()?;
        usize::try_from(count).ok().filter(|count| *count <= ROWS_MAX).ok_or(DAMAGED_ERROR)
    }

    /// Reads `count` integers that [`put_numbers`] has written.
    pub(super) fn read_numbers(&mut self, count: usize) -> Result<Vec<i64>> {
        let min = self.read_word()?.cast_signed();
        let value = |distance: u64| min.wrapping_add(distance.cast_signed());
        Ok(match self.read_byte()? {
            0 => vec![min; count],
            1 => self.read_items::<1>(count)?.map(|[byte]| value(byte.into())).collect(),
            2 => self.read_items(count)?.map(|item| value(u16::from_le_bytes(item).into())).collect(),
            4 => self.read_items(count)?.map(|item| value(u32::from_le_bytes(item).into())).collect(),
            8 => self.read_items(count)?.map(|item| value(u64::from_le_bytes(item))).collect(),
            _ => return Err(DAMAGED_ERROR),
        })
    }
}

pub(super) const DAMAGED_ERROR: Error = Error::Internal("a spill file has damaged bytes: its rows cannot be decoded");
