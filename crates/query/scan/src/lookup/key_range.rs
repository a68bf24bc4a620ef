//! Ranges of encoded index keys.

use catalog::ShardList;
use rowstore::{Value, encode_key_value};
use shards::{Datum, ZoneMapEntry};
use types::ColumnId;

/// Byte greater than the first byte of any encoded value: a prefix followed by it is greater than all keys with that
/// prefix.
const ABOVE_ALL_PREFIXES: u8 = 0xff;
/// Encoding of NULL.
const NULL_ENCODING: u8 = 2;

/// Range of encoded keys, from `from` (inclusive) to `to` (exclusive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// Bound of a range of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyBound<T> {
    None,
    Included(T),
    Excluded(T),
}

impl KeyRange {
    /// Returns the range of all keys that begin with `start`.
    pub(crate) fn starting_with(start: &[u8]) -> Self {
        Self::between(start, KeyBound::None, KeyBound::None)
    }

    /// Returns the range of keys that begin with `start` and whose next column lies within the bounds; NULLs are
    /// included only without bounds.
    pub(crate) fn between(start: &[u8], least: KeyBound<Value<'_>>, greatest: KeyBound<Value<'_>>) -> Self {
        let with = |value: Value<'_>| {
            let mut key = start.to_vec();
            encode_key_value(value, &mut key);
            key
        };
        let after = |mut key: Vec<u8>| {
            key.push(ABOVE_ALL_PREFIXES);
            key
        };
        let is_bounded = !matches!((&least, &greatest), (KeyBound::None, KeyBound::None));
        let from = match least {
            KeyBound::None => start.to_vec(),
            KeyBound::Included(value) => with(value),
            KeyBound::Excluded(value) => after(with(value)),
        };
        let to = match greatest {
            KeyBound::None if is_bounded => [start, &[NULL_ENCODING]].concat(),
            KeyBound::None => after(start.to_vec()),
            KeyBound::Included(value) => after(with(value)),
            KeyBound::Excluded(value) => with(value),
        };
        Self { from, to }
    }

    /// Returns the positions of the shards that, by their zone maps, may have keys of the range; `column` is the first
    /// column of the index.
    pub fn overlapping_shards<'a>(
        &'a self,
        shards: &'a ShardList,
        column: ColumnId,
    ) -> impl Iterator<Item = usize> + 'a {
        shards.positions_by_zone(column, move |zone| self.may_overlap(zone))
    }

    fn may_overlap(&self, zone: &ZoneMapEntry<'_>) -> bool {
        let Some((least, greatest)) = key_bounds(zone) else { return true };
        self.from < greatest && least < self.to
    }
}

/// Returns a lower bound (inclusive) and an upper bound (exclusive) of the keys of a zone.
fn key_bounds(zone: &ZoneMapEntry<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut least, mut greatest) = (Vec::new(), Vec::new());
    encode_key_value(datum_to_value(zone.min?), &mut least);
    if zone.nulls != Some(0) {
        greatest.push(NULL_ENCODING);
    } else {
        encode_key_value(datum_to_value(zone.max?), &mut greatest);
    }
    greatest.push(ABOVE_ALL_PREFIXES);
    Some((least, greatest))
}

/// Converts a value of the statistics to a stored value.
pub(crate) fn datum_to_value(datum: &Datum) -> Value<'_> {
    match datum {
        Datum::Bool(value) => Value::Bool(*value),
        Datum::Int(value) => Value::Int(*value),
        Datum::Decimal(value) => Value::Decimal(*value),
        Datum::Float(value) => Value::Float8(*value),
        Datum::Text(text) => Value::Text(text),
        Datum::Bytes(bytes) => Value::Bytes(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(values: &[Value<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        for value in values {
            encode_key_value(*value, &mut key);
        }
        // Entries of an index end with the row id.
        key.extend(7_u64.to_be_bytes());
        key
    }

    fn has(range: &KeyRange, values: &[Value<'_>]) -> bool {
        let key = key(values);
        range.from <= key && key < range.to
    }

    #[test]
    fn ranges_respect_bounds_of_next_column() {
        let mut start = Vec::new();
        encode_key_value(Value::Int(1), &mut start);
        let two = Value::Int(2);
        let at_least = KeyRange::between(&start, KeyBound::Included(two), KeyBound::None);
        let more = KeyRange::between(&start, KeyBound::Excluded(two), KeyBound::None);
        let at_most = KeyRange::between(&start, KeyBound::None, KeyBound::Included(two));
        let less = KeyRange::between(&start, KeyBound::None, KeyBound::Excluded(two));
        let all = KeyRange::starting_with(&start);
        let of = |value| [Value::Int(1), value, Value::Text("x")];
        for (value, wanted) in [
            (Value::Int(1), [false, false, true, true, true]),
            (Value::Int(2), [true, false, true, false, true]),
            (Value::Int(3), [true, true, false, false, true]),
            (Value::Null, [false, false, false, false, true]),
        ] {
            let found = [&at_least, &more, &at_most, &less, &all].map(|range| has(range, &of(value)));
            assert_eq!(found, wanted, "{value:?}");
            assert!(!has(&all, &[Value::Int(2), value]));
        }
    }

    #[test]
    fn text_prefix_is_no_key_prefix() {
        let mut start = Vec::new();
        encode_key_value(Value::Text("ab"), &mut start);
        assert!(has(&KeyRange::starting_with(&start), &[Value::Text("ab")]));
        assert!(!has(&KeyRange::starting_with(&start), &[Value::Text("abc")]));
    }
}
