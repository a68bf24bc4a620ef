//! Packed minima and maxima of one column, with 64-bit keys that compare as the values do.

use crate::Datum;
use crate::datum::compare_floats;
use crate::packed_metadata::integer_packing::PackedNumbers;
use crate::packed_metadata::shard_set::ShardSet;
use crate::packed_metadata::value_range::{RangeEnd, ValueRange};

/// Packed minima and maxima of one column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PackedBounds {
    kind: DatumKind,
    /// Common prefix of all texts or byte strings.
    prefix: Box<[u8]>,
    /// Key of each minimum; 0 if the bound is unknown.
    min_keys: PackedNumbers,
    /// Key of each maximum; the largest key if the bound is unknown.
    max_keys: PackedNumbers,
    values: Values,
}

/// Common variant of all values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatumKind {
    /// There are no values.
    None,
    Bool,
    Int,
    Decimal,
    Float,
    Text,
    Bytes,
    /// Values of several variants, because the column changed its type.
    Mixed,
}

/// Storage of the values themselves.
#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// Values are restored from their keys.
    Keys,
    /// Minimum and maximum of each shard, concatenated, without the common prefix.
    Bytes { ends: PackedNumbers, bytes: Box<[u8]> },
    /// Minimum and maximum of each shard.
    Datums(Box<[Option<Datum>]>),
}

impl PackedBounds {
    /// Packs each shard's minimum and maximum.
    pub(super) fn pack(bounds: &[(Option<&Datum>, Option<&Datum>)]) -> Self {
        let all = || bounds.iter().flat_map(|(min, max)| [*min, *max]);
        let known = || all().flatten();
        let kind = known().map(kind_of).reduce(|one, other| if one == other { one } else { DatumKind::Mixed });
        let kind = kind.unwrap_or(DatumKind::None);
        let start = common_prefix(known().filter_map(bytes_of));
        let key = |datum: Option<&Datum>| datum.and_then(|datum| key(kind, &start, datum));
        let least: Vec<u64> = bounds.iter().map(|(min, _)| key(*min).unwrap_or(0)).collect();
        let greatest: Vec<u64> = bounds.iter().map(|(_, max)| key(*max).unwrap_or(u64::MAX)).collect();
        let is_short = |datum: &Datum| !matches!(datum, Datum::Decimal(value) if i64::try_from(*value).is_err());
        let values = match kind {
            DatumKind::Text | DatumKind::Bytes => {
                let mut bytes = Vec::new();
                let end = |datum: Option<&Datum>| {
                    bytes.extend_from_slice(datum.and_then(bytes_of).map_or(&[][..], |bytes| &bytes[start.len()..]));
                    bytes.len() as u64
                };
                let ends: Vec<u64> = all().map(end).collect();
                Values::Bytes { ends: PackedNumbers::pack(&ends), bytes: bytes.into() }
            }
            DatumKind::Mixed => Values::Datums(all().map(Option::<&Datum>::cloned).collect()),
            DatumKind::Decimal if !known().all(is_short) => {
                Values::Datums(all().map(Option::<&Datum>::cloned).collect())
            }
            _ => Values::Keys,
        };
        Self {
            kind,
            prefix: start,
            min_keys: PackedNumbers::pack(&least),
            max_keys: PackedNumbers::pack(&greatest),
            values,
        }
    }

    /// Returns the minimum of a shard that has one.
    pub(super) fn min(&self, shard: usize) -> Datum {
        self.value(shard, 2 * shard, &self.min_keys)
    }

    /// Returns the maximum of a shard that has one.
    pub(super) fn max(&self, shard: usize) -> Datum {
        self.value(shard, 2 * shard + 1, &self.max_keys)
    }

    fn value(&self, shard: usize, place: usize, keys: &PackedNumbers) -> Datum {
        match &self.values {
            Values::Keys => {
                let key = keys.get(shard);
                match self.kind {
                    DatumKind::Bool => Datum::Bool(key != 0),
                    DatumKind::Decimal => Datum::Decimal(key_to_int(key).into()),
                    DatumKind::Float => Datum::Float(key_to_float(key)),
                    _ => Datum::Int(key_to_int(key)),
                }
            }
            Values::Bytes { ends, bytes } => {
                let start = place.checked_sub(1).map_or(0, |before| ends.get(before));
                let index = |end: u64| usize::try_from(end).expect("offsets into memory fit usize");
                let value = [&*self.prefix, &bytes[index(start)..index(ends.get(place))]].concat();
                match self.kind {
                    DatumKind::Bytes => Datum::Bytes(value),
                    _ => Datum::Text(String::from_utf8(value).expect("the bytes of a text were packed")),
                }
            }
            Values::Datums(values) => {
                values[place].clone().expect("min and max are called for shards that have bounds")
            }
        }
    }

    /// Removes shards that certainly have no value within `reach`.
    pub(super) fn filter(&self, reach: &ValueRange<'_>, chosen: &mut ShardSet) {
        if let Some(from) = reach.from.as_ref().and_then(|end| self.range_end_key(end)) {
            self.max_keys.retain_at_least(from, chosen);
        }
        if let Some(to) = reach.to.as_ref().and_then(|end| self.range_end_key(end)) {
            self.min_keys.retain_at_most(to, chosen);
        }
    }

    /// Returns the key of the end of a range; `None` if it does not compare with the column's values.
    fn range_end_key(&self, end: &RangeEnd<'_>) -> Option<u64> {
        match end {
            RangeEnd::Value(datum) => key(self.kind, &self.prefix, datum),
            // All texts with this prefix have at most this key.
            RangeEnd::PrefixEnd(prefix) if self.kind == DatumKind::Text => {
                Some(last_key_with_prefix(&self.prefix, prefix))
            }
            RangeEnd::PrefixStart(prefix) if self.kind == DatumKind::Text => Some(bytes_key(&self.prefix, prefix)),
            RangeEnd::PrefixEnd(_) | RangeEnd::PrefixStart(_) => None,
        }
    }

    /// Returns the heap size in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        let values = match &self.values {
            Values::Keys => 0,
            Values::Bytes { ends, bytes } => ends.heap_bytes() + bytes.len(),
            Values::Datums(values) => size_of_val(&**values),
        };
        self.prefix.len() + self.min_keys.heap_bytes() + self.max_keys.heap_bytes() + values
    }
}

fn kind_of(datum: &Datum) -> DatumKind {
    match datum {
        Datum::Bool(_) => DatumKind::Bool,
        Datum::Int(_) => DatumKind::Int,
        Datum::Decimal(_) => DatumKind::Decimal,
        Datum::Float(_) => DatumKind::Float,
        Datum::Text(_) => DatumKind::Text,
        Datum::Bytes(_) => DatumKind::Bytes,
    }
}

fn bytes_of(datum: &Datum) -> Option<&[u8]> {
    match datum {
        Datum::Text(text) => Some(text.as_bytes()),
        Datum::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

/// Maps a value to a key such that a lesser value never has a greater key; `None` for a value of another kind, which
/// does not compare.
fn key(kind: DatumKind, start: &[u8], datum: &Datum) -> Option<u64> {
    Some(match (kind, datum) {
        (DatumKind::Bool, Datum::Bool(value)) => u64::from(*value),
        (DatumKind::Int, Datum::Int(value)) => int_to_key(*value),
        (DatumKind::Decimal, Datum::Decimal(value)) => {
            let least = if *value < 0 { i64::MIN } else { i64::MAX };
            int_to_key(i64::try_from(*value).unwrap_or(least))
        }
        (DatumKind::Float, Datum::Float(value)) => float_to_key(*value),
        (DatumKind::Text, Datum::Text(text)) => bytes_key(start, text.as_bytes()),
        (DatumKind::Bytes, Datum::Bytes(bytes)) => bytes_key(start, bytes),
        _ => return None,
    })
}

const SIGN_BIT: u64 = 1 << 63;

/// Maps an integer to its key.
fn int_to_key(number: i64) -> u64 {
    number.cast_unsigned() ^ SIGN_BIT
}

fn key_to_int(key: u64) -> i64 {
    (key ^ SIGN_BIT).cast_signed()
}

/// Maps a float to its key: zeros share one, and so do NaNs, after everything else.
fn float_to_key(value: f64) -> u64 {
    let value = if compare_floats(value, 0.0).is_eq() { 0.0 } else { value };
    let bits = if value.is_nan() { f64::NAN.to_bits() & !SIGN_BIT } else { value.to_bits() };
    if bits & SIGN_BIT == 0 { bits | SIGN_BIT } else { !bits }
}

fn key_to_float(key: u64) -> f64 {
    f64::from_bits(if key & SIGN_BIT == 0 { !key } else { key ^ SIGN_BIT })
}

/// Maps a byte string to its key: the first eight bytes after the common prefix.
fn bytes_key(start: &[u8], bytes: &[u8]) -> u64 {
    match bytes.strip_prefix(start) {
        Some(rest) => first_eight_bytes(rest, 0),
        None if bytes < start => 0,
        None => u64::MAX,
    }
}

/// Returns the greatest key of byte strings that start with `prefix`.
fn last_key_with_prefix(start: &[u8], prefix: &[u8]) -> u64 {
    if start.starts_with(prefix) {
        return u64::MAX;
    }
    match prefix.strip_prefix(start) {
        Some(rest) => first_eight_bytes(rest, u8::MAX),
        None => bytes_key(start, prefix),
    }
}

/// Reads the first eight bytes as a big-endian number, missing ones replaced by `filling`.
fn first_eight_bytes(bytes: &[u8], filling: u8) -> u64 {
    let mut first = [filling; 8];
    for (first, byte) in first.iter_mut().zip(bytes) {
        *first = *byte;
    }
    u64::from_be_bytes(first)
}

/// Returns the longest common prefix.
fn common_prefix<'a>(mut strings: impl Iterator<Item = &'a [u8]>) -> Box<[u8]> {
    let Some(first) = strings.next() else { return Box::default() };
    let common = |start: &'a [u8], other: &[u8]| {
        let length = start.iter().zip(other).take_while(|(one, other)| one == other).count();
        &start[..length]
    };
    strings.fold(first, common).into()
}
