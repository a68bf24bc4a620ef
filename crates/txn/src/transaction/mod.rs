//! One transaction: its view, what it has staged, its savepoints, its end.

use std::sync::Arc;

use catalog::{CatalogState, Change};
use types::CommitTs;

use crate::group::Proposal;
use crate::{Error, Result, Snapshot, Transactions, Uploads, conflict};

#[cfg(test)]
mod tests;

/// What a transaction sees of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Each statement sees what was committed before it began.
    #[default]
    ReadCommitted,
    /// All statements see what was committed before the transaction began.
    RepeatableRead,
}

/// A transaction. Dropped without [`Transaction::commit`] it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    transactions: Arc<Transactions>,
    isolation: Isolation,
    /// The commit that `staged` was made to.
    base: Snapshot,
    /// `base` with `staged`.
    view: Arc<CatalogState>,
    staged: Vec<Change>,
    savepoints: Vec<Savepoint>,
    uploads: Uploads,
}

#[derive(Debug)]
struct Savepoint {
    name: String,
    /// How many changes were staged when it was set.
    staged: usize,
}

impl Transaction {
    pub(crate) fn new(transactions: Arc<Transactions>, isolation: Isolation) -> Self {
        let base = transactions.current();
        let view = Arc::clone(&base.state);
        let uploads = Uploads::new(Arc::clone(&transactions));
        Self { transactions, isolation, base, view, staged: Vec::new(), savepoints: Vec::new(), uploads }
    }

    /// What this transaction sees: committed states and its own changes.
    #[must_use]
    pub fn view(&self) -> Snapshot {
        self.base.with_state(Arc::clone(&self.view))
    }

    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// To be called before each statement. Under READ COMMITTED the view moves on to the newest commit, with the staged
    /// changes made to that; if they cannot be, it is a conflict and the transaction has to be rolled back.
    pub fn refresh(&mut self) -> Result<()> {
        if self.isolation == Isolation::RepeatableRead {
            return Ok(());
        }
        let newest = self.transactions.current();
        if newest.ts == self.base.ts {
            return Ok(());
        }
        self.view = if self.staged.is_empty() {
            Arc::clone(&newest.state)
        } else {
            let rebased = conflict::rebase(&self.base.state, &newest.state, &self.staged, |_, _| ());
            Arc::new(rebased.map_err(Error::Conflict)?)
        };
        self.base = newest;
        Ok(())
    }

    /// Makes all `changes` to the view, or none if one is refused.
    pub fn stage(&mut self, changes: Vec<Change>) -> Result<()> {
        let mut view = CatalogState::clone(&self.view);
        for change in &changes {
            view = view.apply(change)?;
        }
        self.view = Arc::new(view);
        self.staged.extend(changes);
        Ok(())
    }

    /// Whether there is anything to commit.
    #[must_use]
    pub fn is_dirty(&self) -> bool {
        !self.staged.is_empty()
    }

    /// See [`Uploads::announce`].
    pub async fn announce_upload(&self, object: &str) -> Result<()> {
        self.uploads.announce(object).await
    }

    /// What the tasks that write this transaction's objects announce them with.
    #[must_use]
    pub fn uploads(&self) -> Uploads {
        self.uploads.clone()
    }

    /// Sets a savepoint; one of the same name stays, hidden by the new one.
    pub fn savepoint(&mut self, name: &str) {
        self.savepoints.push(Savepoint { name: name.to_owned(), staged: self.staged.len() });
    }

    /// Takes back everything since the savepoint, which stays.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let index = self.find(name)?;
        self.savepoints.truncate(index + 1);
        let kept = self.savepoints[index].staged;
        if kept < self.staged.len() {
            self.staged.truncate(kept);
            let mut view = CatalogState::clone(&self.base.state);
            for change in &self.staged {
                view = view.apply(change)?;
            }
            self.view = Arc::new(view);
        }
        Ok(())
    }

    /// Forgets the savepoint and those set after it; their changes stay.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let index = self.find(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    /// Makes the changes durable, then visible to all. Once this has been polled, dropping it does not take the commit back:
    /// it happens or fails unseen.
    pub async fn commit(mut self) -> Result<CommitTs> {
        if self.transactions.is_poisoned() {
            return Err(Error::Poisoned);
        }
        if self.staged.is_empty() {
            // Nothing to commit; objects it may have announced are deleted with the drop.
            return Ok(self.base.ts);
        }
        let proposal = Proposal {
            base: Arc::clone(&self.base.state),
            changes: std::mem::take(&mut self.staged),
            uploads: self.uploads.take(),
        };
        self.transactions.commit(proposal).await
    }

    /// Takes everything back; what was uploaded is deleted by the next cleaning.
    pub fn rollback(self) {
        drop(self);
    }

    fn find(&self, name: &str) -> Result<usize> {
        let unknown = || Error::UnknownSavepoint { name: name.to_owned() };
        self.savepoints.iter().rposition(|savepoint| savepoint.name == name).ok_or_else(unknown)
    }
}

/// A rollback, unless the changes were handed to the committer; what it uploaded goes with the last of [`Uploads`].
impl Drop for Transaction {
    fn drop(&mut self) {
        self.uploads.end();
    }
}
