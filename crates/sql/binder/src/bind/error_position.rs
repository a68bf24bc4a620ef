//! Positions of errors in the client's text.

use datafusion::sql::sqlparser::tokenizer::Span;
use syntax::ParsedStatement;
use types::SqlError;

/// Text that the spans of a statement refer to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StatementText<'a> {
    /// Text of the statement; `None` if the client has not written it, as for a view's query.
    statement: Option<&'a str>,
    /// Number of characters of the query string before the statement.
    characters_before: usize,
}

impl<'a> StatementText<'a> {
    pub(super) fn from_parsed(parsed: &'a ParsedStatement) -> Self {
        Self { statement: Some(&parsed.text), characters_before: parsed.offset }
    }

    /// Adds the position of `span` to the error.
    pub(super) fn with_span(self, error: SqlError, span: Span) -> SqlError {
        self.with_position(error, Some((span.start.line, span.start.column)))
    }

    /// Adds the position of a line and column, both from 1, to the error.
    pub(super) fn with_position(self, error: SqlError, place: Option<(u64, u64)>) -> SqlError {
        match place.and_then(|(line, column)| self.position(line, column)) {
            Some(position) => error.with_position(position),
            None => error,
        }
    }

    fn position(self, line: u64, column: u64) -> Option<u32> {
        let text = self.statement?;
        let line = usize::try_from(line.checked_sub(1)?).ok()?;
        let column = usize::try_from(column.checked_sub(1)?).ok()?;
        let mut lines = text.split_inclusive('\n');
        let earlier: usize = lines.by_ref().take(line).map(|line| line.chars().count()).sum();
        lines.next().or_else(|| (text.is_empty() || text.ends_with('\n')).then_some(""))?;
        u32::try_from(self.characters_before + earlier + column + 1).ok()
    }
}
