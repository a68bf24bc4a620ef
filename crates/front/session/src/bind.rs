//! The extended protocol's requests as plain data: Bind, Describe and Close.

use bytes::Bytes;
use types::{Condition, SqlError, SqlResult, SqlType};
use value_codec::encode::Format;

use crate::rows::Columns;

/// A portal to make from a prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    pub portal: String,
    pub statement: String,
    /// None: all text; one: for all; else one for each parameter. 0 is text, 1 is binary.
    pub parameter_formats: Vec<i16>,
    /// `None` is NULL.
    pub parameters: Vec<Option<Bytes>>,
    /// As `parameter_formats`, for the columns of the result.
    pub result_formats: Vec<i16>,
}

/// The parameters and columns of a prepared statement.
#[derive(Debug, Clone)]
pub struct Described {
    /// Types of its parameters.
    pub parameters: Vec<SqlType>,
    /// `None` where it gives no rows.
    pub columns: Option<Columns>,
}

/// The object that Describe and Close name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Statement(String),
    Portal(String),
}

/// The format of each of `count` values, from the codes of a Bind message: none (all text), one for all, or one each.
pub fn formats_of(codes: &[i16], count: usize, what: &str, of: &str) -> SqlResult<Vec<Format>> {
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
pub fn violation(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::ProtocolViolation, message)
}
