//! Encoding of one value in a stored row as a tag and bytes.

use crate::value::List;
use crate::{Error, Result, Value};

const NULL_TAG: u8 = 0;
const FALSE_TAG: u8 = 1;
const TRUE_TAG: u8 = 2;
const INT_TAG: u8 = 3;
const DECIMAL_TAG: u8 = 4;
const FLOAT4_TAG: u8 = 5;
const FLOAT8_TAG: u8 = 6;
const TEXT_TAG: u8 = 7;
const BYTES_TAG: u8 = 8;
const INTERVAL_TAG: u8 = 9;
const LIST_TAG: u8 = 10;

/// Maximum nesting depth of lists: the maximum number of dimensions of PostgreSQL's arrays.
const DEPTH_MAX: usize = 6;

/// Appends a value's bytes and returns its tag.
#[inline]
pub(super) fn encode(value: Value<'_>, out: &mut Vec<u8>) -> Result<u8> {
    encode_at_depth(value, out, 0)
}

fn encode_at_depth(value: Value<'_>, out: &mut Vec<u8>, depth: usize) -> Result<u8> {
    Ok(match value {
        Value::Null => NULL_TAG,
        Value::Bool(false) => FALSE_TAG,
        Value::Bool(true) => TRUE_TAG,
        Value::Int(value) => {
            put_int(value, out);
            INT_TAG
        }
        Value::Decimal(value) => {
            match i64::try_from(value) {
                Ok(small) => put_int(small, out),
                Err(_) => out.extend_from_slice(&value.to_le_bytes()),
            }
            DECIMAL_TAG
        }
        Value::Float4(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            FLOAT4_TAG
        }
        Value::Float8(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            FLOAT8_TAG
        }
        Value::Text(text) => {
            out.extend_from_slice(text.as_bytes());
            TEXT_TAG
        }
        Value::Bytes(bytes) => {
            out.extend_from_slice(bytes);
            BYTES_TAG
        }
        Value::Interval { months, days, nanos } => {
            out.extend_from_slice(&months.to_le_bytes());
            out.extend_from_slice(&days.to_le_bytes());
            out.extend_from_slice(&nanos.to_le_bytes());
            INTERVAL_TAG
        }
        Value::List(list) => {
            put_list(list, out, depth)?;
            LIST_TAG
        }
    })
}

#[inline]
fn put_int(value: i64, out: &mut Vec<u8>) {
    if let Ok(value) = i8::try_from(value) {
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        out.extend_from_slice(&value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        out.extend_from_slice(&value.to_le_bytes());
    } else {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

fn put_list(list: List<'_>, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    if depth == DEPTH_MAX {
        return Err(Error::ListDepth);
    }
    let too_large = |bytes| Error::TooLarge { columns: 1, bytes };
    let count = u32::try_from(list.len()).map_err(|_| too_large(list.len()))?;
    out.extend_from_slice(&count.to_le_bytes());
    let mut item = Vec::new();
    for value in list.iter() {
        item.clear();
        out.push(encode_at_depth(value, &mut item, depth + 1)?);
        let mut length = u32::try_from(item.len()).map_err(|_| too_large(item.len()))?;
        while 0x80 <= length {
            out.push(0x80 | length.to_le_bytes()[0]);
            length >>= 7;
        }
        out.push(length.to_le_bytes()[0]);
        out.extend_from_slice(&item);
    }
    Ok(())
}

/// Decodes a value from its tag and bytes. The elements of a list are not validated.
#[inline]
pub(super) fn decode(tag: u8, bytes: &[u8]) -> Result<Value<'_>> {
    Ok(match tag {
        NULL_TAG if bytes.is_empty() => Value::Null,
        FALSE_TAG if bytes.is_empty() => Value::Bool(false),
        TRUE_TAG if bytes.is_empty() => Value::Bool(true),
        INT_TAG => Value::Int(read_int(bytes)?),
        DECIMAL_TAG => Value::Decimal(match <[u8; 16]>::try_from(bytes) {
            Ok(bytes) => i128::from_le_bytes(bytes),
            Err(_) => i128::from(read_int(bytes)?),
        }),
        FLOAT4_TAG => Value::Float4(f32::from_le_bytes(to_exact_array(bytes)?)),
        FLOAT8_TAG => Value::Float8(f64::from_le_bytes(to_exact_array(bytes)?)),
        TEXT_TAG => Value::Text(std::str::from_utf8(bytes).map_err(|_| Error::Damaged("text is not UTF-8"))?),
        BYTES_TAG => Value::Bytes(bytes),
        INTERVAL_TAG => {
            let [a, b, c, d, e, f, g, h, nanos @ ..] = to_exact_array::<16>(bytes)?;
            Value::Interval {
                months: i32::from_le_bytes([a, b, c, d]),
                days: i32::from_le_bytes([e, f, g, h]),
                nanos: i64::from_le_bytes(nanos),
            }
        }
        LIST_TAG => {
            let (count, items) = bytes.split_first_chunk().ok_or(Error::Damaged("a list value is cut off"))?;
            Value::List(List::from_encoded(EncodedList { count: u32::from_le_bytes(*count), items }))
        }
        NULL_TAG | FALSE_TAG | TRUE_TAG => return Err(Error::Damaged("a value without content has bytes")),
        _ => return Err(Error::Damaged("a value has an unknown type tag")),
    })
}

#[inline]
fn read_int(bytes: &[u8]) -> Result<i64> {
    Ok(match *bytes {
        [a] => i64::from(i8::from_le_bytes([a])),
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(to_exact_array(bytes)?),
    })
}

fn to_exact_array<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| Error::Damaged("value has the wrong length"))
}

/// Validates a value, including the elements of lists.
pub(super) fn check(tag: u8, bytes: &[u8], depth: usize) -> Result<()> {
    let Value::List(_) = decode(tag, bytes)? else { return Ok(()) };
    if depth == DEPTH_MAX {
        return Err(Error::ListDepth);
    }
    let (count, mut items) = bytes.split_first_chunk().ok_or(Error::Damaged("a list value is cut off"))?;
    for _ in 0..u32::from_le_bytes(*count) {
        let (tag, bytes) = split_first_element(&mut items)?;
        check(tag, bytes, depth + 1)?;
    }
    if items.is_empty() { Ok(()) } else { Err(Error::Damaged("bytes follow a list's last element")) }
}

/// Splits the first element, its tag and bytes, off `items`.
fn split_first_element<'a>(items: &mut &'a [u8]) -> Result<(u8, &'a [u8])> {
    const LIST_CUT_OFF: Error = Error::Damaged("a list value is cut off");
    let (&tag, mut rest) = items.split_first().ok_or(LIST_CUT_OFF)?;
    let (mut length, mut shift) = (0_usize, 0_u32);
    loop {
        let (&byte, after) = rest.split_first().ok_or(LIST_CUT_OFF)?;
        rest = after;
        length |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
        if 28 < shift {
            return Err(Error::Damaged("length of a list element has too many bytes"));
        }
    }
    let (bytes, rest) = rest.split_at_checked(length).ok_or(LIST_CUT_OFF)?;
    *items = rest;
    Ok((tag, bytes))
}

/// Encoded list in a validated row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EncodedList<'a> {
    count: u32,
    items: &'a [u8],
}

impl<'a> EncodedList<'a> {
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.count).expect("usize has at least 32 bits")
    }

    pub(crate) const fn iter(&self) -> EncodedItems<'a> {
        EncodedItems { remaining: self.items }
    }
}

/// Iterator over the elements of an encoded list in a validated row.
#[derive(Debug, Clone)]
pub(crate) struct EncodedItems<'a> {
    remaining: &'a [u8],
}

impl<'a> Iterator for EncodedItems<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.remaining.is_empty() {
            return None;
        }
        let (tag, bytes) = split_first_element(&mut self.remaining).expect("a Tuple contains validated bytes");
        Some(decode(tag, bytes).expect("a Tuple contains validated bytes"))
    }
}
