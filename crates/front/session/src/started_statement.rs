//! Statements that have begun to run: with rows to send, or complete.

use crate::result_rows::Rows;

/// Statement that has begun to run.
pub(crate) enum StartedStatement {
    /// A statement with rows to send.
    Rows(OpenResult),
    /// A statement that is complete, with its command tag.
    Done(String),
}

/// Open result, whose rows are computed as they are fetched.
pub(crate) enum OpenResult {
    /// Rows of a plan, with the first word of the command tag.
    Plan { rows: Box<Rows>, tag_word: &'static str },
    /// Rows of an open cursor, of which FETCH still wants `left` (`None`: all).
    Cursor { name: String, rows_wanted: Option<u64> },
}

impl StartedStatement {
    /// Wraps the rows of a plan.
    pub(crate) fn rows(rows: Rows, tag_word: &'static str) -> Self {
        Self::Rows(OpenResult::Plan { rows: Box::new(rows), tag_word })
    }
}

impl OpenResult {
    /// Returns the first word of the command tag.
    pub(crate) fn tag_word(&self) -> &'static str {
        match self {
            Self::Plan { tag_word, .. } => tag_word,
            Self::Cursor { .. } => "FETCH",
        }
    }
}

/// Builds the command tag of a statement from its word and its number of rows.
pub(crate) fn command_tag(word: &str, rows: u64) -> String {
    match word {
        "INSERT" => format!("INSERT 0 {rows}"),
        "SELECT" | "FETCH" | "MOVE" | "COPY" | "UPDATE" | "DELETE" | "MERGE" => format!("{word} {rows}"),
        other => other.to_owned(),
    }
}
