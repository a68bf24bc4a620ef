//! Where in the input a failure lies, as PostgreSQL says it.

use types::SqlError;

/// The most bytes of a line or value that a context shows.
const SHOWN_BYTES: usize = 100;

/// The input a chunk belongs to.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) table: String,
    /// File or URL; a client's stream has no name.
    pub(super) input: Option<String>,
}

/// What of the input a failure is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    /// The line alone.
    Line,
    /// The line with its text.
    Text(&'a str),
    /// A column, whose value is not shown.
    Column(&'a str),
    /// A column's value, `None` for NULL.
    Value(&'a str, Option<&'a str>),
}

impl Origin {
    /// `COPY t, line 3, column b: "abc"`, with `file "…"` before the line where the input has a name.
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

    /// `error` with its place, unless it says one already.
    pub(super) fn place(&self, error: SqlError, line: u64, part: Part<'_>) -> SqlError {
        if error.context.is_some() { error } else { error.with_context(self.context(line, part)) }
    }
}

fn clip(text: &str) -> String {
    if text.len() <= SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}...", &text[..text.floor_char_boundary(SHOWN_BYTES)])
}
