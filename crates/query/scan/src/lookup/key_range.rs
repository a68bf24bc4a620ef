//! A range of an index, in the form of its keys.

use catalog::ShardList;
use rowstore::{Value, encode_key_value};
use shards::{Datum, Zone};
use types::ColumnId;

/// No key's next part begins with it: what follows a key's start and all keys that have it.
const AFTER_ALL: u8 = 0xff;
/// What the part of a NULL is.
const NULL_PART: u8 = 2;

/// The keys from `from` on and before `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// The end of a range of one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyBound<T> {
    None,
    Included(T),
    Excluded(T),
}

impl KeyRange {
    /// All keys that begin with `start`.
    pub(crate) fn starting_with(start: &[u8]) -> Self {
        Self::between(start, KeyBound::None, KeyBound::None)
    }

    /// The keys that begin with `start` and whose next column lies within the bounds; NULL does where there is no bound at all.
    pub(crate) fn between(start: &[u8], least: KeyBound<Value<'_>>, greatest: KeyBound<Value<'_>>) -> Self {
        let with = |value: Value<'_>| {
            let mut key = start.to_vec();
            encode_key_value(value, &mut key);
            key
        };
        let after = |mut key: Vec<u8>| {
            key.push(AFTER_ALL);
            key
        };
        let is_bounded = !matches!((&least, &greatest), (KeyBound::None, KeyBound::None));
        let from = match least {
            KeyBound::None => start.to_vec(),
            KeyBound::Included(value) => with(value),
            KeyBound::Excluded(value) => after(with(value)),
        };
        let to = match greatest {
            KeyBound::None if is_bounded => [start, &[NULL_PART]].concat(),
            KeyBound::None => after(start.to_vec()),
            KeyBound::Included(value) => after(with(value)),
            KeyBound::Excluded(value) => with(value),
        };
        Self { from, to }
    }

    /// The positions of the shards that by their statistics may have a key of the range in an index that begins with `column`.
    pub fn shards<'a>(&'a self, shards: &'a ShardList, column: ColumnId) -> impl Iterator<Item = usize> + 'a {
        shards.asked(column, move |zone| self.may_be_in(zone))
    }

    fn may_be_in(&self, zone: &Zone<'_>) -> bool {
        let Some((least, greatest)) = bounds(zone) else { return true };
        self.from < greatest && least < self.to
    }
}

/// A key that is not greater than those of the column's values, and one that is greater than all.
fn bounds(zone: &Zone<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut least, mut greatest) = (Vec::new(), Vec::new());
    encode_key_value(value_of(zone.min?), &mut least);
    if zone.nulls != Some(0) {
        greatest.push(NULL_PART);
    } else {
        encode_key_value(value_of(zone.max?), &mut greatest);
    }
    greatest.push(AFTER_ALL);
    Some((least, greatest))
}

/// A shard's statistic as a value of a row.
pub(crate) fn value_of(datum: &Datum) -> Value<'_> {
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
        // As an entry ends: with the row's id.
        key.extend(7_u64.to_be_bytes());
        key
    }

    fn has(range: &KeyRange, values: &[Value<'_>]) -> bool {
        let key = key(values);
        range.from <= key && key < range.to
    }

    #[test]
    fn bounds_of_the_next_column_are_kept_whatever_follows_it() {
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
    fn a_start_of_a_text_is_no_start_of_a_key() {
        let mut start = Vec::new();
        encode_key_value(Value::Text("ab"), &mut start);
        assert!(has(&KeyRange::starting_with(&start), &[Value::Text("ab")]));
        assert!(!has(&KeyRange::starting_with(&start), &[Value::Text("abc")]));
    }
}
