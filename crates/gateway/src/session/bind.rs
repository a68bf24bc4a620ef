//! What a client says of portals and prepared statements, however its bytes say it.

use bytes::Bytes;
use types::{Condition, SqlError, SqlResult};
use value_codec::encode::Format;

/// A portal to make from a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bind {
    pub(crate) portal: String,
    pub(crate) statement: String,
    /// None: all text; one: for all; else one for each parameter. 0 is text, 1 is binary.
    pub(crate) parameter_formats: Vec<i16>,
    /// `None` is NULL.
    pub(crate) parameters: Vec<Option<Bytes>>,
    /// As `parameter_formats`, for the columns of the result.
    pub(crate) result_formats: Vec<i16>,
}

/// What Describe and Close are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Statement(String),
    Portal(String),
}

/// The format of each of `count` values, from the codes of a Bind message: none (all text), one for all, or one each.
pub(crate) fn formats_of(codes: &[i16], count: usize, what: &str, of: &str) -> SqlResult<Vec<Format>> {
    let format = |code: &i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(SqlError::new(Condition::InvalidParameterValue, format!("unsupported format code: {other}"))),
    };
    match codes {
        [] => Ok(vec![Format::Text; count]),
        [code] => Ok(vec![format(code)?; count]),
        codes if codes.len() == count => codes.iter().map(format).collect(),
        codes => Err(violation(format!("bind message has {} {what} formats but {count} {of}", codes.len()))),
    }
}

/// `08P01`.
pub(crate) fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::ProtocolViolation, message)
}
