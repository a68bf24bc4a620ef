//! Splits text into statements, as psql does.

use super::lexer::{Token, TokenKind, next_token};

#[cfg(test)]
mod tests;

/// Words at a statement's beginning that tell whether it creates a routine.
const ROUTINE_WORDS_MAX: usize = 4;

/// Detector of a statement's end. A semicolon in parentheses or in an SQL-standard function body ends nothing.
#[derive(Default)]
pub(crate) struct StatementEnd {
    first_words: Vec<String>,
    follows_begin: bool,
    parentheses: usize,
    blocks: usize,
}

impl StatementEnd {
    /// Takes the statement's next token; returns whether it is the semicolon that ends the statement.
    pub(crate) fn is_reached(&mut self, token: &Token, sql: &str) -> bool {
        match token.kind {
            TokenKind::Symbol('(') => self.parentheses += 1,
            TokenKind::Symbol(')') => self.parentheses = self.parentheses.saturating_sub(1),
            TokenKind::Symbol(';') => return self.parentheses == 0 && self.blocks == 0,
            TokenKind::Word => self.take_word(token.text(sql).to_lowercase()),
            TokenKind::QuotedName | TokenKind::Text | TokenKind::Number | TokenKind::Symbol(_) => {}
        }
        false
    }

    fn take_word(&mut self, word: String) {
        match word.as_str() {
            "atomic" if self.follows_begin && self.creates_routine() => self.blocks += 1,
            "case" if 0 < self.blocks => self.blocks += 1,
            "end" => self.blocks = self.blocks.saturating_sub(1),
            _ => {}
        }
        self.follows_begin = word == "begin";
        if self.first_words.len() < ROUTINE_WORDS_MAX {
            self.first_words.push(word);
        }
    }

    fn creates_routine(&self) -> bool {
        let mut words = self.first_words.iter();
        words.next().is_some_and(|word| word == "create") && words.any(|word| word == "function" || word == "procedure")
    }
}

/// Returns the statements of a text without their semicolons, each with its position in bytes.
pub(crate) fn split(sql: &str) -> Vec<(usize, &str)> {
    let mut statements = Vec::new();
    let mut end = StatementEnd::default();
    let mut current: Option<(usize, usize)> = None;
    let mut at = 0;
    while let Some(token) = next_token(sql, at) {
        at = token.end;
        if end.is_reached(&token, sql) {
            statements.extend(current.take());
            end = StatementEnd::default();
        } else {
            current = Some((current.map_or(token.start, |(start, _)| start), token.end));
        }
    }
    statements.extend(current);
    statements.into_iter().map(|(start, end)| (start, &sql[start..end])).collect()
}
