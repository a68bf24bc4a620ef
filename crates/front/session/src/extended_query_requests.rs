//! Requests of the extended protocol as plain data: Bind, Describe and Close.

use bytes::Bytes;
use types::{Condition, SqlError, SqlResult, SqlType};
use value_codec::encode::Format;

use crate::result_rows::Columns;

/// Request to bind a prepared statement to a portal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindRequest {
    pub portal: String,
    pub statement: String,
    /// Format codes, 0 for text and 1 for binary: none means all text, one applies to all parameters, else one per
    /// parameter.
    pub parameter_formats: Vec<i16>,
    /// Values of the parameters as sent; `None` is NULL.
    pub parameters: Vec<Option<Bytes>>,
    /// Format codes like `parameter_formats`, for the columns of the result.
    pub result_formats: Vec<i16>,
}

/// Parameters and columns of a prepared statement.
#[derive(Debug, Clone)]
pub struct StatementDescription {
    /// Types of the parameters.
    pub parameters: Vec<SqlType>,
    /// Columns of the result; `None` if it returns no rows.
    pub columns: Option<Columns>,
}

/// Object that Describe or Close names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Statement(String),
    Portal(String),
}

/// Returns the format of each of `count` values for the format codes of a Bind message: none (all text), one for all,
/// or one each. `what` and `of` are words of the error.
pub fn expand_formats(codes: &[i16], count: usize, format_word: &str, value_word: &str) -> SqlResult<Vec<Format>> {
    let format = |code: &i16| match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        other => Err(SqlError::new(Condition::InvalidParameterValue, format!("unsupported format code: {other}"))),
    };
    match codes {
        [] => Ok(vec![Format::Text; count]),
        [code] => Ok(vec![format(code)?; count]),
        codes if codes.len() == count => codes.iter().map(format).collect(),
        codes => Err(protocol_violation(format!(
            "bind message has {} {format_word} formats but {count} {value_word}",
            codes.len()
        ))),
    }
}

/// Returns the error of a message that violates the protocol (`08P01`).
pub fn protocol_violation(message: impl Into<String>) -> SqlError {
    SqlError::new(Condition::ProtocolViolation, message)
}
