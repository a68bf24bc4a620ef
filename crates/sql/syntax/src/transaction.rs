//! BEGIN, COMMIT, ROLLBACK, savepoints, and the modes of a transaction.

use types::SqlResult;

use super::session_statement::SessionStatement;
use super::token_cursor::Cursor;

/// Modes of BEGIN and SET TRANSACTION; `None` for a mode that is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionModes {
    pub isolation: Option<IsolationLevel>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
}

/// Isolation level as written; the transaction layer decides which levels differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

impl Cursor<'_> {
    pub(super) fn transaction(&mut self) -> SqlResult<SessionStatement> {
        let words = ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
        let word = self.eat_one_of(&words).ok_or_else(|| self.syntax_error())?;
        match word {
            "start" => {
                self.expect("transaction")?;
                self.optional_modes().map(SessionStatement::Begin)
            }
            "savepoint" => Ok(SessionStatement::Savepoint(self.name()?.value)),
            "release" => {
                self.eat("savepoint");
                Ok(SessionStatement::Release(self.name()?.value))
            }
            "commit" | "rollback" if self.next_is("prepared") => Err(self.unsupported("a prepared transaction")),
            _ => {
                self.eat_one_of(&["work", "transaction"]);
                match word {
                    "begin" => self.optional_modes().map(SessionStatement::Begin),
                    "rollback" if self.eat("to") => {
                        self.eat("savepoint");
                        Ok(SessionStatement::RollbackTo(self.name()?.value))
                    }
                    "commit" | "end" => Ok(SessionStatement::Commit { chain: self.and_chain() }),
                    _ => Ok(SessionStatement::Rollback { chain: self.and_chain() }),
                }
            }
        }
    }

    /// Parses an optional `AND [NO] CHAIN`; true for AND CHAIN.
    fn and_chain(&mut self) -> bool {
        if self.eat("and no chain") {
            return false;
        }
        self.eat("and chain")
    }

    /// Parses transaction modes, with or without commas; there may be none.
    fn optional_modes(&mut self) -> SqlResult<TransactionModes> {
        if self.is_at_end() { Ok(TransactionModes::default()) } else { self.transaction_modes() }
    }

    /// Parses one or more transaction modes.
    pub(super) fn transaction_modes(&mut self) -> SqlResult<TransactionModes> {
        let mut modes = TransactionModes::default();
        loop {
            if self.eat("isolation level") {
                let levels = [
                    ("read uncommitted", IsolationLevel::ReadUncommitted),
                    ("read committed", IsolationLevel::ReadCommitted),
                    ("repeatable read", IsolationLevel::RepeatableRead),
                    ("serializable", IsolationLevel::Serializable),
                ];
                let level = levels.into_iter().find(|(words, _)| self.eat(words)).map(|(_, level)| level);
                modes.isolation = Some(level.ok_or_else(|| self.syntax_error())?);
            } else if self.eat("read only") {
                modes.read_only = Some(true);
            } else if self.eat("read write") {
                modes.read_only = Some(false);
            } else if self.eat("deferrable") {
                modes.deferrable = Some(true);
            } else if self.eat("not deferrable") {
                modes.deferrable = Some(false);
            } else {
                return Err(self.syntax_error());
            }
            if !self.eat_symbol(',') && self.is_at_end() {
                return Ok(modes);
            }
        }
    }
}
