//! The states of a statement that has begun to run.

use crate::rows::Rows;

/// A plan that has begun to run.
pub(crate) enum Started {
    /// Rows that are made as they are asked for; the tag's word.
    Rows(Box<Rows>, &'static str),
    /// Rows of an open cursor, `count` of them (`None`: all).
    Fetch { cursor: String, count: Option<u64> },
    /// It is done; the whole tag.
    Done(String),
    /// Another transaction came first: it has to be planned again on what is committed now.
    Again,
}

/// The end of a portal's run.
pub(crate) struct Ran {
    pub(crate) tag: String,
    pub(crate) flow: Flow,
}

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Complete,
    Suspended,
}

/// The text that says what a statement did.
pub(crate) fn tag(word: &str, rows: u64) -> String {
    match word {
        "INSERT" => format!("INSERT 0 {rows}"),
        "SELECT" | "FETCH" | "MOVE" | "COPY" | "UPDATE" | "DELETE" | "MERGE" => format!("{word} {rows}"),
        other => other.to_owned(),
    }
}
