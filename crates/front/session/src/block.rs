//! The transaction a session is in: implicit around what runs, or a block that BEGIN opened; and the settings that
//! commit and roll back with it.

use std::sync::Arc;

use binder::Step;
use cluster_model::ClusterId;
use storage_error::from_transaction;
use txn::{Isolation, Snapshot, Transaction, Transactions};
use types::{Condition, SqlError, SqlResult};

use crate::block_status::BlockStatus;
use crate::held::Held;
use crate::snapshot_age::too_old;

/// Transaction, failure, savepoints and settings of one session.
pub(crate) struct Block {
    transactions: Arc<Transactions>,
    /// From the first statement to commit or rollback.
    open: Option<Open>,
    /// What holds right now, SET LOCAL included.
    held: Held,
}

struct Open {
    /// `None` once it has seen the past for too long and has let go of all.
    transaction: Option<Transaction>,
    modes: Modes,
    /// BEGIN was said: only COMMIT and ROLLBACK end it.
    explicit: bool,
    failed: bool,
    /// A statement has looked at data in it: its modes are fixed.
    used: bool,
    started_us: i64,
    /// When what it sees of others was committed.
    looked_us: i64,
    /// As they were before it: what a rollback restores.
    before: Held,
    /// As they will be after a commit: SET counts, SET LOCAL does not.
    after: Held,
    savepoints: Vec<Savepoint>,
    /// The cluster that has run what it has written.
    written_on: Option<ClusterId>,
}

struct Savepoint {
    name: String,
    current: Held,
    after: Held,
    /// How many cursors the session had declared when it was set.
    declared: u64,
}

/// What BEGIN and SET TRANSACTION may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
}

impl Block {
    pub(crate) fn new(transactions: Arc<Transactions>, held: Held) -> Self {
        Self { transactions, open: None, held }
    }

    /// What ReadyForQuery says.
    pub(crate) fn status(&self) -> BlockStatus {
        match &self.open {
            Some(open) if open.failed => BlockStatus::Failed,
            Some(open) if open.explicit => BlockStatus::Open,
            _ => BlockStatus::Idle,
        }
    }

    pub(crate) fn is_explicit(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.explicit)
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.failed)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Settings and roles as they hold now.
    pub(crate) fn held(&self) -> &Held {
        &self.held
    }

    /// The transaction that the next statement runs in: the open one with a view as of now, else a new one.
    pub(crate) fn enter(&mut self, modes: Modes, now_us: i64) -> SqlResult<()> {
        match &mut self.open {
            Some(open) if open.failed => Err(SqlError::new(
                Condition::InFailedTransaction,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            // Nothing has been seen yet: what the transaction sees is fixed by its first look, not by BEGIN.
            Some(open) if !open.used => {
                open.transaction = Some(self.transactions.begin(open.modes.isolation));
                open.looked_us = now_us;
                Ok(())
            }
            Some(open) => {
                if open.modes.isolation == Isolation::ReadCommitted {
                    open.looked_us = now_us;
                }
                open.live()?.refresh().map_err(from_transaction)
            }
            None => {
                self.open = Some(Open {
                    transaction: Some(self.transactions.begin(modes.isolation)),
                    modes,
                    explicit: false,
                    failed: false,
                    used: false,
                    started_us: now_us,
                    looked_us: now_us,
                    before: self.held.clone(),
                    after: self.held.clone(),
                    savepoints: Vec::new(),
                    written_on: None,
                });
                self.show_modes(modes);
                Ok(())
            }
        }
    }

    /// BEGIN: the open transaction, implicit so far, becomes a block; `false` if it was one already.
    pub(crate) fn begin(&mut self, modes: Modes, now_us: i64) -> SqlResult<bool> {
        if let Some(open) = &mut self.open
            && !open.used
            && !open.explicit
        {
            // What was SET before in the same message goes on.
            open.modes = modes;
            self.show_modes(modes);
        }
        self.enter(modes, now_us)?;
        let open = self.open.as_mut().expect("entered");
        let was = std::mem::replace(&mut open.explicit, true);
        Ok(!was)
    }

    /// SET TRANSACTION, before any query of the block.
    pub(crate) fn set_modes(&mut self, modes: Modes) -> SqlResult<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.modes.isolation != modes.isolation {
            if open.used {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new(Condition::ActiveTransaction, message));
            }
            open.transaction = Some(self.transactions.begin(modes.isolation));
        }
        if open.modes.read_only && !modes.read_only && open.used {
            let message = "transaction read-write mode must be set before any query";
            return Err(SqlError::new(Condition::ActiveTransaction, message));
        }
        open.modes = modes;
        self.show_modes(modes);
        Ok(())
    }

    /// SHOW transaction_isolation and transaction_read_only tell what holds.
    fn show_modes(&mut self, modes: Modes) {
        let isolation = match modes.isolation {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        let read_only = if modes.read_only { "on" } else { "off" };
        for (name, value) in [("transaction_isolation", isolation), ("transaction_read_only", read_only)] {
            if !self.held.settings.is(name, value) {
                self.held.settings_mut().set_internal(name, value);
            }
        }
    }

    pub(crate) fn modes(&self) -> Option<Modes> {
        self.open.as_ref().map(|open| open.modes)
    }

    /// The open transaction, for a statement that looks at data or changes it.
    pub(crate) fn transaction(&mut self) -> &mut Transaction {
        let open = self.open.as_mut().expect("a statement runs in a transaction");
        open.used = true;
        open.transaction.as_mut().expect("no statement runs in a transaction that has let go of all")
    }

    /// When what the open transaction sees of others was committed; `None` where it sees nothing.
    pub(crate) fn looked_us(&self) -> Option<i64> {
        self.open.as_ref().filter(|open| open.transaction.is_some()).map(|open| open.looked_us)
    }

    /// As [`Self::looked_us`], where that stays so from one statement to the next.
    pub(crate) fn fixed_us(&self) -> Option<i64> {
        let is_fixed = |open: &&Open| open.used && open.modes.isolation != Isolation::ReadCommitted;
        self.open.as_ref().filter(is_fixed).map(|open| open.looked_us)
    }

    /// Has the open transaction see what is committed by now. One that may not lets go of all that it saw and did: `false`.
    pub(crate) fn look_anew(&mut self, now_us: i64) -> bool {
        let Some(Open { transaction: transaction @ Some(_), modes, used, looked_us, .. }) = &mut self.open else {
            return true;
        };
        *looked_us = now_us;
        if !*used {
            *transaction = Some(self.transactions.begin(modes.isolation));
            return true;
        }
        let may_look = modes.isolation == Isolation::ReadCommitted;
        let goes_on = may_look && transaction.as_mut().is_some_and(|transaction| transaction.refresh().is_ok());
        if !goes_on {
            *transaction = None;
        }
        goes_on
    }

    /// `72000` where the open transaction has let go of all.
    pub(crate) fn check_live(&mut self) -> SqlResult<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.live().map(|_| ()))
    }

    /// What the open transaction sees, for planning.
    pub(crate) fn view(&self) -> Snapshot {
        match &self.open {
            Some(Open { transaction: Some(transaction), .. }) => transaction.view(),
            _ => self.transactions.current(),
        }
    }

    /// The cluster that the open transaction has written on.
    pub(crate) fn written_on(&self) -> Option<ClusterId> {
        self.open.as_ref().and_then(|open| open.written_on)
    }

    /// Whether there is something that only a commit makes true.
    pub(crate) fn has_written(&self) -> bool {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(Transaction::is_dirty)
    }

    /// Whether others may have to wait for the end of the open transaction.
    pub(crate) fn holds_locks(&self) -> bool {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(Transaction::holds_locks)
    }

    pub(crate) fn note_written_on(&mut self, cluster: ClusterId) {
        if let Some(open) = &mut self.open {
            open.written_on.get_or_insert(cluster);
        }
    }

    /// When the open transaction began.
    pub(crate) fn started_us(&self) -> Option<i64> {
        self.open.as_ref().map(|open| open.started_us)
    }

    /// Refuses what a read-only transaction must not do.
    pub(crate) fn check_writable(&self, command: &str) -> SqlResult<()> {
        if self.open.as_ref().is_some_and(|open| open.modes.read_only) {
            let message = format!("cannot execute {command} in a read-only transaction");
            return Err(SqlError::new(Condition::ReadOnlyTransaction, message));
        }
        Ok(())
    }

    /// A statement failed: a block waits for its end or a savepoint, an implicit transaction is rolled back.
    pub(crate) fn fail(&mut self) {
        match &mut self.open {
            Some(open) if open.explicit => open.failed = true,
            _ => self.roll_back(),
        }
    }

    /// Ends the transaction and keeps what it did.
    pub(crate) async fn commit(&mut self) -> SqlResult<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let _step = Step::Commit.span();
        let committed = match open.transaction {
            Some(transaction) => transaction.commit().await.map_err(from_transaction),
            None => Err(too_old()),
        };
        match committed {
            Ok(_) => {
                self.held = open.after;
                Ok(())
            }
            Err(error) => {
                self.held = open.before;
                Err(error)
            }
        }
    }

    /// Ends a transaction that has written nothing; `false` where there is something to commit, or to tell.
    pub(crate) fn end_unwritten(&mut self) -> bool {
        let is_unwritten = |open: &Open| open.transaction.as_ref().is_some_and(|transaction| !transaction.is_dirty());
        if self.transactions.is_poisoned() || !self.open.as_ref().is_none_or(is_unwritten) {
            return false;
        }
        if let Some(open) = self.open.take() {
            drop(Step::Commit.span());
            self.held = open.after;
        }
        true
    }

    /// Ends the transaction and forgets what it did.
    pub(crate) fn roll_back(&mut self) {
        if let Some(open) = self.open.take() {
            self.held = open.before;
            drop(open.transaction);
        }
    }

    /// Changes settings or roles: for the transaction only, or for the session if the transaction commits.
    pub(crate) fn change(&mut self, local: bool, change: impl Fn(&mut Held) -> SqlResult<()>) -> SqlResult<()> {
        let mut held = self.held.clone();
        change(&mut held)?;
        if let Some(open) = &mut self.open
            && !local
        {
            let mut after = open.after.clone();
            change(&mut after)?;
            open.after = after;
        }
        self.held = held;
        Ok(())
    }

    pub(crate) fn savepoint(&mut self, name: &str, declared: u64) -> SqlResult<()> {
        let current = self.held.clone();
        let open = self.explicit("SAVEPOINT")?;
        open.used = true;
        open.live()?.savepoint(name);
        open.savepoints.push(Savepoint { name: name.to_owned(), current, after: open.after.clone(), declared });
        Ok(())
    }

    /// ROLLBACK TO: back to the savepoint, which stays; a failed block lives again. How many cursors were declared before it.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> SqlResult<u64> {
        let open = self.explicit("ROLLBACK TO SAVEPOINT")?;
        let index = find(&open.savepoints, name)?;
        open.live()?.rollback_to(name).map_err(from_transaction)?;
        open.savepoints.truncate(index + 1);
        open.failed = false;
        open.after = open.savepoints[index].after.clone();
        let savepoint = &open.savepoints[index];
        let (current, declared) = (savepoint.current.clone(), savepoint.declared);
        self.held = current;
        Ok(declared)
    }

    pub(crate) fn release(&mut self, name: &str) -> SqlResult<()> {
        let open = self.explicit("RELEASE SAVEPOINT")?;
        let index = find(&open.savepoints, name)?;
        open.live()?.release(name).map_err(from_transaction)?;
        open.savepoints.truncate(index);
        Ok(())
    }

    fn explicit(&mut self, command: &str) -> SqlResult<&mut Open> {
        match &mut self.open {
            Some(open) if open.explicit => Ok(open),
            _ => Err(outside(command)),
        }
    }
}

impl Open {
    fn live(&mut self) -> SqlResult<&mut Transaction> {
        self.transaction.as_mut().ok_or_else(too_old)
    }
}

/// The newest savepoint of that name.
fn find(savepoints: &[Savepoint], name: &str) -> SqlResult<usize> {
    savepoints
        .iter()
        .rposition(|savepoint| savepoint.name == name)
        .ok_or_else(|| SqlError::new(Condition::InvalidSavepoint, format!("savepoint \"{name}\" does not exist")))
}

/// What makes sense within a block only.
pub(crate) fn outside(command: &str) -> SqlError {
    SqlError::new(Condition::NoActiveTransaction, format!("{command} can only be used in transaction blocks"))
}
