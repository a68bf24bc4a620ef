//! Text input and output of every type, identical to PostgreSQL's.
//!
//! `parse_*` accept what PostgreSQL accepts and fail with its messages; `format_*` append what PostgreSQL prints (ISO
//! dates, `postgres` intervals, hex bytea, shortest floats) and allocate only the output. COPY, the wire protocol,
//! literals and casts all use these functions.
//!
//! In reading order:
//! - `bool.rs`, `integer.rs`, `float.rs`, `numeric.rs`: booleans and numbers
//! - `calendar_date.rs`: calendar arithmetic
//! - `date.rs`, `time.rs`, `timestamp.rs`: dates and times in ISO form; `datetime_parser.rs`: in any other form
//! - `interval.rs`, `bytea.rs`, `uuid.rs`, `array.rs`, `json.rs`: the other types

mod array;
mod bool;
mod bytea;
mod calendar_date;
mod date;
mod datetime_parser;
mod float;
mod integer;
mod interval;
pub mod json;
mod numeric;
mod time;
mod timestamp;
mod uuid;

pub use self::array::{ArrayWriter, parse_array};
pub use self::bool::{format_bool, parse_bool};
pub use self::bytea::{format_bytea, parse_bytea};
pub use self::calendar_date::{
    CivilDate, DATE_DAYS_MAX, DATE_DAYS_MIN, TIMESTAMP_US_MAX, TIMESTAMP_US_MIN, US_PER_DAY, civil_from_days,
    days_from_civil, days_in_month,
};
pub use self::date::{format_date, parse_date, parse_date_in};
pub use self::datetime_parser::{DateContext, DateOrder};
pub use self::float::{format_float4, format_float8, parse_float4, parse_float8};
pub use self::integer::{format_int, parse_int2, parse_int4, parse_int8, parse_oid};
pub use self::interval::{IntervalUnits, format_interval, parse_interval, parse_interval_in};
pub use self::json::{Json, check_json, format_json_string, normalize_jsonb, parse_json};
pub use self::numeric::{NumericPosition, format_numeric, numeric_position, parse_numeric, parse_numeric_exact};
pub use self::time::{format_time, parse_time};
pub use self::timestamp::{
    format_timestamp, format_timestamptz, parse_timestamp, parse_timestamp_in, parse_timestamptz, parse_timestamptz_in,
};
pub use self::uuid::{format_uuid, parse_uuid};

use crate::{Condition, SqlError};

/// Returns PostgreSQL's `22P02` for malformed input.
fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        Condition::InvalidTextRepresentation,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

/// Removes the white space around a value that PostgreSQL skips.
fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Removes such white space at the start only.
fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// Whether C's `isspace` is true for the character: ASCII white space only.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}
