//! The context of errors: table, input, line and column, in PostgreSQL's words.

use types::SqlError;

/// Maximum bytes of a line or value in a context.
const SHOWN_BYTES: usize = 100;

/// Input that a chunk belongs to.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) table: String,
    /// Name of the file or URL; `None` for a client's stream.
    pub(super) input: Option<String>,
}

/// Part of a line that an error is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// The line, by number only.
    Line,
    /// The line, with its text.
    Text(&'a str),
    /// A column, without its value.
    Column(&'a str),
    /// A column and its value, `None` for NULL.
    Value(&'a str, Option<&'a str>),
}

impl Origin {
    /// Formats a context such as `COPY t, line 3, column b: "abc"`, with `file "…"` if the input has a name.
    pub(super) fn context(&self, line: u64, part: Part<'_>) -> String {
        let input = match &self.input {
            Some(name) => format!(", file \"{name}\""),
            None => String::new(),
        };
        let place = format!("COPY {}{input}, line {line}", self.table);
        match part {
            Part::Line => place,
            Part::Text(text) => format!("{place}: \"{}\"", clip(text)),
            Part::Column(column) => format!("{place}, column {column}"),
            Part::Value(column, Some(value)) => format!("{place}, column {column}: \"{}\"", clip(value)),
            Part::Value(column, None) => format!("{place}, column {column}: null input"),
        }
    }

    /// Adds the context to an error, unless it has one.
    pub(super) fn place(&self, error: SqlError, line: u64, part: Part<'_>) -> SqlError {
        if error.context.is_some() { error } else { error.with_context(self.context(line, part)) }
    }
}

/// Truncates a text to [`SHOWN_BYTES`].
fn clip(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES)])
}
