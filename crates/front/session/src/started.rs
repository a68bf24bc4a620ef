//! The states of a statement that has begun to run.

use crate::rows::Rows;

/// A statement that has begun to run.
pub(crate) enum Started {
    /// It gives rows.
    Rows(OpenResult),
    /// It is done; the whole tag.
    Done(String),
}

/// Rows that are made as they are asked for.
pub(crate) enum OpenResult {
    /// Those of a plan, with the tag's word.
    Plan { rows: Box<Rows>, word: &'static str },
    /// Those of an open cursor, of which `left` are still wanted (`None`: all).
    Cursor { name: String, left: Option<u64> },
}

impl Started {
    /// Wraps the rows of a plan.
    pub(crate) fn rows(rows: Rows, word: &'static str) -> Self {
        Self::Rows(OpenResult::Plan { rows: Box::new(rows), word })
    }
}

impl OpenResult {
    /// The word that the tag begins with.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Plan { word, .. } => word,
            Self::Cursor { .. } => "FETCH",
        }
    }
}

/// The text that says what a statement did.
pub(crate) fn tag(word: &str, rows: u64) -> String {
    match word {
        "INSERT" => format!("INSERT 0 {rows}"),
        "SELECT" | "FETCH" | "MOVE" | "COPY" | "UPDATE" | "DELETE" | "MERGE" => format!("{word} {rows}"),
        other => other.to_owned(),
    }
}
