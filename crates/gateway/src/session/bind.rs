//! What a client says of portals and prepared statements, however its bytes say it.

use bytes::Bytes;

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
