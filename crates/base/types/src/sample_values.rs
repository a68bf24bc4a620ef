//! Sample values of every SQL type, with those at its edges, for the conformance tests of codecs.
//!
//! Every conformance test runs over [`all_types`] and [`samples`], so a new type is in all of them once it has samples
//! here, and does not compile without.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new type must not compile until it has sample values")]

use crate::SqlType;
use crate::text::{DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY};

/// A value, without a type. Integers are also dates in days and times in microseconds.
#[derive(Debug, Clone)]
pub enum Sample {
    Null,
    Bool(bool),
    Int(i64),
    /// Unscaled value of a numeric.
    Decimal(i128),
    Float4(f32),
    Float8(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Months, days and nanoseconds, which are whole microseconds.
    Interval(i32, i32, i64),
    List(Vec<Sample>),
}

/// Largest time of an interval: nanoseconds of 64 bits, in whole microseconds.
const INTERVAL_NANOS_MAX: i64 = i64::MAX / 1_000 * 1_000;
/// Bytes of a `name`.
const LONGEST_NAME_BYTES: usize = 63;

/// Returns all types: scalars with and without modifiers, and arrays of them.
#[must_use]
pub fn all_types() -> Vec<SqlType> {
    let numeric = |precision, scale| SqlType::Numeric { precision, scale };
    let modified = [
        numeric(1, 0),
        numeric(9, 2),
        numeric(18, 18),
        numeric(19, 0),
        numeric(38, 38),
        SqlType::Varchar(Some(3)),
        SqlType::Char(Some(3)),
    ];
    let scalars: Vec<SqlType> = SqlType::scalars().chain(modified).collect();
    let elements = scalars.iter().filter(|scalar| **scalar != SqlType::Unknown && scalar.element().is_none());
    let arrays: Vec<SqlType> = elements.map(|element| SqlType::Array(Box::new(element.clone()))).collect();
    [scalars, arrays].concat()
}

/// Returns values of a type: NULL, the least and the greatest, and others that codecs treat apart. All are valid for
/// the type and its modifiers.
#[must_use]
pub fn samples(sql_type: &SqlType) -> Vec<Sample> {
    let mut values = non_null_samples(sql_type);
    values.push(Sample::Null);
    values
}

fn non_null_samples(sql_type: &SqlType) -> Vec<Sample> {
    match sql_type {
        SqlType::Bool => vec![Sample::Bool(false), Sample::Bool(true)],
        SqlType::Int2 => integers(i16::MIN.into(), i16::MAX.into()),
        SqlType::Int4 => integers(i32::MIN.into(), i32::MAX.into()),
        SqlType::Int8 => integers(i64::MIN, i64::MAX),
        SqlType::Oid
        | SqlType::Regclass
        | SqlType::Regtype
        | SqlType::Regproc
        | SqlType::Regnamespace
        | SqlType::Regrole
        | SqlType::Regprocedure
        | SqlType::Regoperator => [0, 1, i64::from(i32::MAX) + 1, u32::MAX.into()].map(Sample::Int).to_vec(),
        SqlType::Numeric { precision, .. } => decimals(*precision),
        SqlType::Float4 => [
            f32::NEG_INFINITY,
            f32::MIN,
            -1.5,
            -0.0,
            0.0,
            f32::from_bits(1),
            0.1,
            16_777_216.0,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ]
        .map(Sample::Float4)
        .to_vec(),
        SqlType::Float8 => [
            f64::NEG_INFINITY,
            f64::MIN,
            -1.5,
            -0.0,
            0.0,
            f64::from_bits(1),
            0.1,
            9_007_199_254_740_992.0,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ]
        .map(Sample::Float8)
        .to_vec(),
        SqlType::Text | SqlType::Varchar(None) | SqlType::Unknown => {
            texts().into_iter().chain([" blanks \t\r\n".to_owned(), "x".repeat(70_000)]).map(Sample::Text).collect()
        }
        // Trailing blanks are insignificant, and casts remove them.
        SqlType::Char(None) => texts().into_iter().map(Sample::Text).collect(),
        SqlType::Varchar(Some(length)) => {
            texts().into_iter().map(|text| Sample::Text(first_characters(&text, *length))).collect()
        }
        SqlType::Char(Some(length)) => {
            let width = usize::try_from(*length).expect("32 bits fit a usize");
            texts()
                .into_iter()
                .map(|text| Sample::Text(format!("{:width$}", first_characters(&text, *length))))
                .collect()
        }
        SqlType::Name => texts()
            .into_iter()
            .filter(|text| text.len() <= LONGEST_NAME_BYTES)
            .chain(["n".repeat(LONGEST_NAME_BYTES)])
            .map(Sample::Text)
            .collect(),
        SqlType::InternalChar => ["", "r", "\""].map(|text| Sample::Text(text.to_owned())).to_vec(),
        SqlType::Date => integers(DATE_DAYS_MIN.into(), DATE_DAYS_MAX.into()),
        SqlType::Time => [0, 1, US_PER_DAY - 1, US_PER_DAY].map(Sample::Int).to_vec(),
        SqlType::Timestamp | SqlType::TimestampTz => integers(TIMESTAMP_US_MIN, TIMESTAMP_US_MAX),
        SqlType::Interval => vec![
            Sample::Interval(0, 0, 0),
            Sample::Interval(14, -3, 4_000_005_000),
            Sample::Interval(-1, 30, -1_000),
            Sample::Interval(i32::MAX, i32::MAX, INTERVAL_NANOS_MAX),
            Sample::Interval(-i32::MAX, -i32::MAX, -INTERVAL_NANOS_MAX),
        ],
        SqlType::Bytea => {
            let all: Vec<u8> = (0..=255).collect();
            [vec![], vec![0], vec![0xff, 0], b"\\x".to_vec(), all.repeat(300)].map(Sample::Bytes).to_vec()
        }
        SqlType::Uuid => {
            let mixed = (0..16).map(|byte| byte * 17).collect();
            [vec![0; 16], mixed, vec![0xff; 16]].map(Sample::Bytes).to_vec()
        }
        SqlType::Json => {
            json_samples(&["null", "true", "0", "\"\\u00e9 \\\"\"", "[]", "{ \"a\" :[1, {\"b\":null}] , \"a\": 2}"])
        }
        SqlType::Jsonb => json_samples(&["null", "true", "0", "\"é \\\"\"", "[]", "{\"a\": [1, {\"b\": null}]}"]),
        SqlType::Array(element) => {
            let items = samples(element);
            vec![Sample::List(Vec::new()), Sample::List(vec![Sample::Null]), Sample::List(items)]
        }
        SqlType::Int2Vector => vec![Sample::List(Vec::new()), Sample::List(non_null_samples(&SqlType::Int2))],
        SqlType::OidVector => vec![Sample::List(Vec::new()), Sample::List(non_null_samples(&SqlType::Oid))],
    }
}

fn integers(min: i64, max: i64) -> Vec<Sample> {
    [min, min + 1, -1, 0, 1, max - 1, max].map(Sample::Int).to_vec()
}

/// Returns unscaled values of a numeric, with those around the limits of its representations in 32 and 64 bits.
fn decimals(precision: u8) -> Vec<Sample> {
    let max = 10_i128.pow(u32::from(precision)) - 1;
    let limits = [i128::from(i32::MAX), i128::from(i64::MAX)].into_iter().flat_map(|limit| [limit, limit + 1]);
    let positive: Vec<i128> = [1].into_iter().chain(limits).filter(|value| *value < max).chain([max]).collect();
    let negative = positive.iter().rev().map(|value| -value);
    negative.chain([0]).chain(positive.iter().copied()).map(Sample::Decimal).collect()
}

/// Returns texts without trailing blanks that need quotes in some format.
fn texts() -> Vec<String> {
    ["", "a", "A", "NULL", "null", "\\N", "\\.", "a\"b'c\\d", "{1,2}", "a,b;c|d", "line\nline\ttab\rreturn", "é€𝄞", "-"]
        .into_iter()
        .map(str::to_owned)
        .chain(["a text of more than 12 bytes ".repeat(3) + "."])
        .collect()
}

fn json_samples(texts: &[&str]) -> Vec<Sample> {
    texts.iter().map(|text| Sample::Text((*text).to_owned())).collect()
}

fn first_characters(text: &str, characters: u32) -> String {
    text.chars().take(usize::try_from(characters).expect("32 bits fit a usize")).collect()
}
