//! Transaction block of a session, followed from outside by its statements.

use crate::sql::TransactionCommand;

#[cfg(test)]
mod tests;

/// State of a session's transaction block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) is_open: bool,
    /// Whether a statement of the open block failed, so that all but its end are refused.
    pub(crate) has_failed: bool,
}

impl Block {
    /// Takes a statement that the server accepted.
    pub(crate) fn accept(&mut self, command: Option<TransactionCommand>) {
        match command {
            Some(TransactionCommand::Begin) => *self = Self { is_open: true, has_failed: false },
            Some(TransactionCommand::Commit | TransactionCommand::Rollback) => *self = Self::default(),
            Some(TransactionCommand::RollbackToSavepoint) => self.has_failed = false,
            None => {}
        }
    }

    /// Takes a statement that the server refused.
    pub(crate) fn refuse(&mut self, command: Option<TransactionCommand>) {
        match command {
            Some(TransactionCommand::Commit | TransactionCommand::Rollback) => *self = Self::default(),
            _ => self.has_failed = self.is_open,
        }
    }

    /// Returns whether an accepted statement undoes the block.
    pub(crate) fn is_undone_by(&self, command: Option<TransactionCommand>) -> bool {
        match command {
            Some(TransactionCommand::Rollback) => self.is_open,
            Some(TransactionCommand::Commit) => self.has_failed,
            _ => false,
        }
    }
}
