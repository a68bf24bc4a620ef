//! The context of errors: table, input, line and column, in PostgreSQL's words.

use types::SqlError;

/// Maximum bytes of a line or value in a context.
const SHOWN_BYTES: usize = 100;

/// Input that a chunk belongs to.
#[derive(Debug, Clone)]
pub(super) struct InputOrigin {
    pub(super) table: String,
    /// Name of the file or URL; `None` for a client's stream.
    pub(super) input: Option<String>,
}

/// Part of a line that an error is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum ErrorLocation<'a> {
    /// The line, by number only.
    Line,
    /// The line, with its text.
    Text(&'a str),
    /// A column, without its value.
    Column(&'a str),
    /// A column and its value, `None` for NULL.
    Value(&'a str, Option<&'a str>),
}

impl InputOrigin {
    /// Formats a context such as `COPY t, line 3, column b: "abc"`, with `file "…"` if the input has a name.
    pub(super) fn context(&self, line: u64, part: ErrorLocation<'_>) -> String {
        let input = match &self.input {
            Some(name) => format!(", file \"{name}\""),
            None => String::new(),
        };
        let line_context = format!("COPY {}{input}, line {line}", self.table);
        match part {
            ErrorLocation::Line => line_context,
            ErrorLocation::Text(text) => format!("{line_context}: \"{}\"", truncate(text)),
            ErrorLocation::Column(column) => format!("{line_context}, column {column}"),
            ErrorLocation::Value(column, Some(value)) => {
                format!("{line_context}, column {column}: \"{}\"", truncate(value))
            }
            ErrorLocation::Value(column, None) => format!("{line_context}, column {column}: null input"),
        }
    }

    /// Adds the context to an error, unless it has one.
    pub(super) fn with_context(&self, error: SqlError, line: u64, part: ErrorLocation<'_>) -> SqlError {
        if error.context.is_some() { error } else { error.with_context(self.context(line, part)) }
    }
}

/// Truncates a text to [`SHOWN_BYTES`].
fn truncate(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES)])
}
