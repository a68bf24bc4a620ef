//! Facts about one statement, read off its tokens.

use std::collections::BTreeSet;

use super::lexer::{Token, TokenKind, next_token};

#[cfg(test)]
mod tests;

/// Words of a query that changes something, or that waits.
const CHANGING_WORDS: [&str; 9] =
    ["insert", "update", "delete", "merge", "into", "nextval", "setval", "set_config", "pg_sleep"];

/// Direction of a COPY whose data go through the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    FromClient,
    ToClient,
}

/// Command that begins or ends a transaction block, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionCommand {
    /// BEGIN, or an end with AND CHAIN, after which a block is open.
    Begin,
    Commit,
    Rollback,
    RollbackToSavepoint,
}

/// Statement and its tokens.
pub(crate) struct Statement<'a> {
    sql: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Statement<'a> {
    pub(crate) fn new(sql: &'a str) -> Self {
        let mut at = 0;
        let next = || {
            let token = next_token(sql, at)?;
            at = token.end;
            Some(token)
        };
        Self { sql, tokens: std::iter::from_fn(next).collect() }
    }

    /// Returns the number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Returns the kind of a token; `None` after the last one.
    pub(super) fn kind(&self, at: usize) -> Option<TokenKind> {
        self.tokens.get(at).map(|token| token.kind)
    }

    /// Returns the name that a token stands for.
    pub(super) fn name(&self, at: usize) -> Option<String> {
        self.tokens.get(at)?.name(self.sql)
    }

    /// Returns whether a token is one of the words.
    pub(super) fn is_one_of(&self, at: usize, words: &[&str]) -> bool {
        self.tokens.get(at).is_some_and(|token| {
            token.kind == TokenKind::Word && words.iter().any(|word| token.text(self.sql).eq_ignore_ascii_case(word))
        })
    }

    /// Returns whether the words follow each other at a position.
    pub(crate) fn has_words_at(&self, at: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(offset, word)| self.is_one_of(at + offset, &[word]))
    }

    /// Returns whether the words follow each other anywhere.
    pub(crate) fn has_words(&self, words: &[&str]) -> bool {
        (0..self.tokens.len()).any(|at| self.has_words_at(at, words))
    }

    /// Returns whether the rows of the statement have an order: an ORDER BY outside of parentheses.
    pub(crate) fn has_order(&self) -> bool {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Symbol('(') => depth += 1,
                TokenKind::Symbol(')') => depth = depth.saturating_sub(1),
                TokenKind::Word if depth == 0 && self.has_words_at(at, &["order", "by"]) => return true,
                _ => {}
            }
        }
        false
    }

    /// Returns the direction of a COPY through the client; `None` for other statements and for files.
    pub(crate) fn copy_direction(&self) -> Option<CopyDirection> {
        if !self.is_one_of(0, &["copy"]) {
            None
        } else if self.has_words(&["from", "stdin"]) || self.has_words(&["from", "stdout"]) {
            Some(CopyDirection::FromClient)
        } else if self.has_words(&["to", "stdout"]) || self.has_words(&["to", "stdin"]) {
            Some(CopyDirection::ToClient)
        } else {
            None
        }
    }

    /// Returns the transaction command that the statement is.
    pub(crate) fn transaction_command(&self) -> Option<TransactionCommand> {
        if self.has_words_at(0, &["begin"]) || self.has_words_at(0, &["start", "transaction"]) {
            return Some(TransactionCommand::Begin);
        }
        if !self.is_one_of(0, &["commit", "end", "rollback", "abort"]) || self.is_one_of(1, &["prepared"]) {
            return self.has_words_at(0, &["prepare", "transaction"]).then_some(TransactionCommand::Commit);
        }
        let after = if self.is_one_of(1, &["work", "transaction"]) { 2 } else { 1 };
        Some(if self.is_one_of(after, &["to"]) {
            TransactionCommand::RollbackToSavepoint
        } else if self.has_words_at(after, &["and", "chain"]) {
            TransactionCommand::Begin
        } else if self.is_one_of(0, &["commit", "end"]) {
            TransactionCommand::Commit
        } else {
            TransactionCommand::Rollback
        })
    }

    /// Returns whether the statement shows a plan, which no two servers have in common.
    pub(crate) fn is_explain(&self) -> bool {
        self.is_one_of(0, &["explain"])
    }

    /// Returns whether the statement resets all settings of its session.
    pub(crate) fn resets_session(&self) -> bool {
        self.is_one_of(0, &["reset", "discard"]) && self.is_one_of(1, &["all"])
    }

    /// Returns whether the statement can run twice without a trace.
    pub(crate) fn is_read(&self) -> bool {
        let begins =
            self.is_one_of(0, &["select", "values", "table", "with"]) || self.kind(0) == Some(TokenKind::Symbol('('));
        begins && (0..self.len()).all(|at| !self.is_one_of(at, &CHANGING_WORDS))
    }

    /// Returns all words and quoted identifiers.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.tokens.iter().filter_map(|token| token.name(self.sql)).collect()
    }
}
