//! A single value in statistics and predicates, independent of Arrow.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

mod from_arrow;

#[cfg(test)]
mod tests;

/// Largest size in bytes of text and byte strings stored as a bound.
pub const BOUND_BYTES_MAX: usize = 64;

/// A value that is not NULL. Each SQL type uses one variant:
///
/// | SQL type | variant |
/// |---|---|
/// | `boolean` | `Bool` |
/// | integers, `oid`, `date` (days since 1970), `time`, `timestamp`, `timestamptz` (microseconds) | `Int` |
/// | `numeric(p,s)` | `Decimal`, the value times 10^s |
/// | `real`, `double precision` | `Float` |
/// | `text`, `varchar`, `char` (blank-padded), `json`, `jsonb` | `PrefixedText` |
/// | `bytea`, `uuid` | `Bytes` |
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Datum {
    Bool(bool),
    Int(i64),
    Decimal(i128),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Datum {
    /// Compares two values of one variant as PostgreSQL sorts: text by bytes, NaN above every number, -0 equal to 0.
    /// Returns `None` for different variants.
    #[must_use]
    pub fn compare(&self, other: &Datum) -> Option<Ordering> {
        Some(match (self, other) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
            (Datum::Int(a), Datum::Int(b)) => a.cmp(b),
            (Datum::Decimal(a), Datum::Decimal(b)) => a.cmp(b),
            (Datum::Float(a), Datum::Float(b)) => compare_floats(*a, *b),
            (Datum::Text(a), Datum::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
            _ => return None,
        })
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.compare(other)
    }
}

/// Compares floats as PostgreSQL does: NaN equals itself and is greater than every number.
pub(crate) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Truncates `text` to at most [`BOUND_BYTES_MAX`] bytes, which gives a lower bound.
pub(crate) fn text_lower_bound(text: &str) -> &str {
    &text[..text.floor_char_boundary(BOUND_BYTES_MAX)]
}

/// Returns an upper bound of `text` of at most [`BOUND_BYTES_MAX`] bytes; `None` if there is none.
pub(crate) fn text_upper_bound(text: &str) -> Option<String> {
    if text.len() <= BOUND_BYTES_MAX {
        return Some(text.to_owned());
    }
    let mut bound = text_lower_bound(text).to_owned();
    while let Some(last) = bound.pop() {
        // The next character in code point order, which is UTF-8's byte order; surrogates are skipped.
        let next = match last {
            '\u{d7ff}' => Some('\u{e000}'),
            _ => char::from_u32(u32::from(last) + 1),
        };
        if let Some(next) = next
            && bound.len() + next.len_utf8() <= BOUND_BYTES_MAX
        {
            bound.push(next);
            return Some(bound);
        }
    }
    None
}

/// Truncates `bytes` to at most [`BOUND_BYTES_MAX`], which gives a lower bound.
pub(crate) fn bytes_lower_bound(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(BOUND_BYTES_MAX)]
}

/// Returns an upper bound of `bytes` of at most [`BOUND_BYTES_MAX`] bytes; `None` if there is none.
pub(crate) fn bytes_upper_bound(bytes: &[u8]) -> Option<Vec<u8>> {
    if bytes.len() <= BOUND_BYTES_MAX {
        return Some(bytes.to_vec());
    }
    let mut bound = bytes_lower_bound(bytes).to_vec();
    while let Some(last) = bound.pop() {
        if last < u8::MAX {
            bound.push(last + 1);
            return Some(bound);
        }
    }
    None
}
