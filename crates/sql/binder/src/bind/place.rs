//! Positions of errors in the client's text.

use datafusion::sql::sqlparser::tokenizer::Span;
use syntax::Parsed;
use types::SqlError;

/// Text that the spans of a statement refer to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Text<'a> {
    /// Text of the statement; `None` if the client has not written it, as for a view's query.
    statement: Option<&'a str>,
    /// Number of characters of the query string before the statement.
    before: usize,
}

impl<'a> Text<'a> {
    pub(super) fn of(parsed: &'a Parsed) -> Self {
        Self { statement: Some(&parsed.text), before: parsed.offset }
    }

    /// Adds the position of `span` to the error.
    pub(super) fn mark(self, error: SqlError, span: Span) -> SqlError {
        self.mark_at(error, Some((span.start.line, span.start.column)))
    }

    /// Adds the position of a line and column, both from 1, to the error.
    pub(super) fn mark_at(self, error: SqlError, place: Option<(u64, u64)>) -> SqlError {
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
        u32::try_from(self.before + earlier + column + 1).ok()
    }
}
