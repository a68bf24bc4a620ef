//! Answers of a server to one statement.

/// Most rows of an answer that are kept; larger answers are compared by their number of rows.
pub(crate) const ROWS_MAX: usize = 100_000;

/// Result of an accepted statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) columns: Vec<String>,
    /// First rows, as text; `None` is NULL.
    pub(crate) rows: Vec<Row>,
    pub(crate) row_count: usize,
    /// Number of the command tag.
    pub(crate) affected: u64,
}

/// Values of a row, as text.
pub(crate) type Row = Vec<Option<String>>;

/// Error of a refused statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) sqlstate: String,
    pub(crate) message: String,
}

/// Reply of a server.
#[derive(Debug)]
pub(crate) enum Reply {
    Answer(Answer),
    Refused(Failure),
    TimedOut,
    /// The connection ended, or can no longer be used.
    Lost(String),
}
