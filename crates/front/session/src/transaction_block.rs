//! Transaction of a session: implicit around its statements or a block that BEGIN opened, and the settings that commit
//! and roll back with it.

use std::sync::Arc;

use binder::Step;
use cluster_model::ClusterId;
use storage_error::from_transaction;
use txn::{Isolation, Snapshot, Transaction, Transactions};
use types::{Condition, SqlError, SqlResult};

use crate::session_state::SessionState;
use crate::snapshot_age::snapshot_too_old;
use crate::transaction_block_status::BlockStatus;

/// Transaction state and settings of one session.
pub(crate) struct TransactionBlock {
    transactions: Arc<Transactions>,
    /// Open transaction; `None` between commit or rollback and the next statement.
    open: Option<OpenTransaction>,
    /// Settings and roles in effect, SET LOCAL included.
    session_state: SessionState,
}

/// Open transaction with its modes, savepoints and settings.
struct OpenTransaction {
    /// `None` once its snapshot was too old and was released with all of the transaction's changes.
    transaction: Option<Transaction>,
    modes: BlockModes,
    /// True after BEGIN: only COMMIT and ROLLBACK end the transaction.
    explicit: bool,
    failed: bool,
    /// True once a statement has used the snapshot: isolation level and read-write mode are fixed.
    snapshot_used: bool,
    started_us: i64,
    /// Time at which its snapshot was taken.
    snapshot_us: i64,
    /// Settings before the transaction, restored by a rollback.
    state_before: SessionState,
    /// Settings after a commit: changed by SET, not by SET LOCAL.
    state_after_commit: SessionState,
    savepoints: Vec<Savepoint>,
    /// Cluster that the transaction's writes have run on.
    writing_cluster: Option<ClusterId>,
}

/// Savepoint with the settings to restore.
struct Savepoint {
    name: String,
    state: SessionState,
    state_after_commit: SessionState,
    /// Number of cursors that the session had declared before the savepoint.
    cursors_declared: u64,
}

/// Modes of a transaction, as BEGIN and SET TRANSACTION set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockModes {
    pub(crate) isolation: Isolation,
    pub(crate) read_only: bool,
}

impl TransactionBlock {
    pub(crate) fn new(transactions: Arc<Transactions>, held: SessionState) -> Self {
        Self { transactions, open: None, session_state: held }
    }

    /// Returns the transaction status that ReadyForQuery reports.
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

    /// Returns the settings and roles in effect.
    pub(crate) fn session_state(&self) -> &SessionState {
        &self.session_state
    }

    /// Begins a transaction for the next statement, or continues the open one, with a new snapshot if its isolation
    /// level takes one per statement.
    pub(crate) fn enter(&mut self, modes: BlockModes, now_us: i64) -> SqlResult<()> {
        match &mut self.open {
            Some(open) if open.failed => Err(SqlError::new(
                Condition::InFailedTransaction,
                "current transaction is aborted, commands ignored until end of transaction block",
            )),
            // The first use fixes the snapshot, not BEGIN: until then each statement takes a new one.
            Some(open) if !open.snapshot_used => {
                open.transaction = Some(self.transactions.begin(open.modes.isolation));
                open.snapshot_us = now_us;
                Ok(())
            }
            Some(open) => {
                if open.modes.isolation == Isolation::ReadCommitted {
                    open.snapshot_us = now_us;
                }
                open.live_transaction()?.refresh().map_err(from_transaction)
            }
            None => {
                self.open = Some(OpenTransaction {
                    transaction: Some(self.transactions.begin(modes.isolation)),
                    modes,
                    explicit: false,
                    failed: false,
                    snapshot_used: false,
                    started_us: now_us,
                    snapshot_us: now_us,
                    state_before: self.session_state.clone(),
                    state_after_commit: self.session_state.clone(),
                    savepoints: Vec::new(),
                    writing_cluster: None,
                });
                self.publish_modes(modes);
                Ok(())
            }
        }
    }

    /// BEGIN: turns the open implicit transaction, or a new one, into a block; `false` if it was one already.
    pub(crate) fn begin(&mut self, modes: BlockModes, now_us: i64) -> SqlResult<bool> {
        if let Some(open) = &mut self.open
            && !open.snapshot_used
            && !open.explicit
        {
            // Settings that earlier statements of the same message have SET stay in effect.
            open.modes = modes;
            self.publish_modes(modes);
        }
        self.enter(modes, now_us)?;
        let open = self.open.as_mut().expect("`enter` opens a transaction");
        let was_explicit = std::mem::replace(&mut open.explicit, true);
        Ok(!was_explicit)
    }

    /// SET TRANSACTION: changes the modes; most changes are refused after the first query of the block (`25001`).
    pub(crate) fn set_modes(&mut self, modes: BlockModes) -> SqlResult<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.modes.isolation != modes.isolation {
            if open.snapshot_used {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new(Condition::ActiveTransaction, message));
            }
            open.transaction = Some(self.transactions.begin(modes.isolation));
        }
        if open.modes.read_only && !modes.read_only && open.snapshot_used {
            let message = "transaction read-write mode must be set before any query";
            return Err(SqlError::new(Condition::ActiveTransaction, message));
        }
        open.modes = modes;
        self.publish_modes(modes);
        Ok(())
    }

    /// Copies the modes to `transaction_isolation` and `transaction_read_only`, for SHOW.
    fn publish_modes(&mut self, modes: BlockModes) {
        let isolation = match modes.isolation {
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Serializable => "serializable",
        };
        let read_only = if modes.read_only { "on" } else { "off" };
        for (name, value) in [("transaction_isolation", isolation), ("transaction_read_only", read_only)] {
            if !self.session_state.settings.has_value(name, value) {
                self.session_state.settings_mut().set_internal(name, value);
            }
        }
    }

    pub(crate) fn modes(&self) -> Option<BlockModes> {
        self.open.as_ref().map(|open| open.modes)
    }

    /// Returns the open transaction for a statement that reads or changes data; its snapshot counts as used.
    pub(crate) fn transaction(&mut self) -> &mut Transaction {
        let open = self.open.as_mut().expect("a statement runs in a transaction");
        open.snapshot_used = true;
        open.transaction.as_mut().expect("no statement runs in a transaction whose snapshot was released")
    }

    /// Returns the time of the open transaction's snapshot; `None` without one.
    pub(crate) fn snapshot_us(&self) -> Option<i64> {
        self.open.as_ref().filter(|open| open.transaction.is_some()).map(|open| open.snapshot_us)
    }

    /// Returns the time of the open transaction's snapshot if later statements keep using it; `None` otherwise.
    pub(crate) fn fixed_snapshot_us(&self) -> Option<i64> {
        let is_fixed = |open: &&OpenTransaction| open.snapshot_used && open.modes.isolation != Isolation::ReadCommitted;
        self.open.as_ref().filter(is_fixed).map(|open| open.snapshot_us)
    }

    /// Replaces the open transaction's snapshot by a new one. If it must not change, the snapshot and all changes of
    /// the transaction are released: `false`.
    pub(crate) fn renew_snapshot(&mut self, now_us: i64) -> bool {
        let Some(OpenTransaction {
            transaction: transaction @ Some(_),
            modes,
            snapshot_used: used,
            snapshot_us: looked_us,
            ..
        }) = &mut self.open
        else {
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

    /// Fails with `72000` if the open transaction's snapshot was released.
    pub(crate) fn check_snapshot(&mut self) -> SqlResult<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.live_transaction().map(|_| ()))
    }

    /// Returns the open transaction's snapshot, or the newest one without a transaction.
    pub(crate) fn view(&self) -> Snapshot {
        match &self.open {
            Some(OpenTransaction { transaction: Some(transaction), .. }) => transaction.view(),
            _ => self.transactions.current(),
        }
    }

    /// Returns the cluster that the open transaction has written on.
    pub(crate) fn writing_cluster(&self) -> Option<ClusterId> {
        self.open.as_ref().and_then(|open| open.writing_cluster)
    }

    /// Whether the open transaction has something to commit.
    pub(crate) fn has_written(&self) -> bool {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(Transaction::is_dirty)
    }

    /// Whether the open transaction holds locks that others may wait for.
    pub(crate) fn holds_locks(&self) -> bool {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.is_some_and(Transaction::holds_locks)
    }

    /// Records the cluster that a write of the open transaction runs on; the first one counts.
    pub(crate) fn set_writing_cluster(&mut self, cluster: ClusterId) {
        if let Some(open) = &mut self.open {
            open.writing_cluster.get_or_insert(cluster);
        }
    }

    /// Returns the time at which the open transaction began.
    pub(crate) fn started_us(&self) -> Option<i64> {
        self.open.as_ref().map(|open| open.started_us)
    }

    /// Refuses a command in a read-only transaction (`25006`).
    pub(crate) fn check_writable(&self, command: &str) -> SqlResult<()> {
        if self.open.as_ref().is_some_and(|open| open.modes.read_only) {
            let message = format!("cannot execute {command} in a read-only transaction");
            return Err(SqlError::new(Condition::ReadOnlyTransaction, message));
        }
        Ok(())
    }

    /// Handles a failed statement: a block waits for its end or a rollback to a savepoint, an implicit transaction is
    /// rolled back.
    pub(crate) fn fail(&mut self) {
        match &mut self.open {
            Some(open) if open.explicit => open.failed = true,
            _ => self.roll_back(),
        }
    }

    /// Commits the transaction with its settings.
    pub(crate) async fn commit(&mut self) -> SqlResult<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let _step = Step::Commit.span();
        let committed = match open.transaction {
            Some(transaction) => transaction.commit().await.map_err(from_transaction),
            None => Err(snapshot_too_old()),
        };
        match committed {
            Ok(_) => {
                self.session_state = open.state_after_commit;
                Ok(())
            }
            Err(error) => {
                self.session_state = open.state_before;
                Err(error)
            }
        }
    }

    /// Ends a transaction that has written nothing, without waiting; `false` if there is something to commit or an
    /// error to report.
    pub(crate) fn try_end_read_only(&mut self) -> bool {
        let is_unwritten =
            |open: &OpenTransaction| open.transaction.as_ref().is_some_and(|transaction| !transaction.is_dirty());
        if self.transactions.is_poisoned() || !self.open.as_ref().is_none_or(is_unwritten) {
            return false;
        }
        if let Some(open) = self.open.take() {
            drop(Step::Commit.span());
            self.session_state = open.state_after_commit;
        }
        true
    }

    /// Rolls back the transaction with its settings.
    pub(crate) fn roll_back(&mut self) {
        if let Some(open) = self.open.take() {
            self.session_state = open.state_before;
            drop(open.transaction);
        }
    }

    /// Changes settings or roles: for the transaction only if `local`, else also for the session if the transaction
    /// commits.
    pub(crate) fn change(&mut self, local: bool, change: impl Fn(&mut SessionState) -> SqlResult<()>) -> SqlResult<()> {
        let mut held = self.session_state.clone();
        change(&mut held)?;
        if let Some(open) = &mut self.open
            && !local
        {
            let mut after = open.state_after_commit.clone();
            change(&mut after)?;
            open.state_after_commit = after;
        }
        self.session_state = held;
        Ok(())
    }

    pub(crate) fn savepoint(&mut self, name: &str, declared: u64) -> SqlResult<()> {
        let current = self.session_state.clone();
        let open = self.explicit_block("SAVEPOINT")?;
        open.snapshot_used = true;
        open.live_transaction()?.set_savepoint(name);
        open.savepoints.push(Savepoint {
            name: name.to_owned(),
            state: current,
            state_after_commit: open.state_after_commit.clone(),
            cursors_declared: declared,
        });
        Ok(())
    }

    /// ROLLBACK TO: rolls back to the savepoint, which stays, and reopens a failed block. Returns the number of cursors
    /// declared before the savepoint.
    pub(crate) fn roll_back_to(&mut self, name: &str) -> SqlResult<u64> {
        let open = self.explicit_block("ROLLBACK TO SAVEPOINT")?;
        let index = find_savepoint(&open.savepoints, name)?;
        open.live_transaction()?.rollback_to_savepoint(name).map_err(from_transaction)?;
        open.savepoints.truncate(index + 1);
        open.failed = false;
        open.state_after_commit = open.savepoints[index].state_after_commit.clone();
        let savepoint = &open.savepoints[index];
        let (current, declared) = (savepoint.state.clone(), savepoint.cursors_declared);
        self.session_state = current;
        Ok(declared)
    }

    pub(crate) fn release(&mut self, name: &str) -> SqlResult<()> {
        let open = self.explicit_block("RELEASE SAVEPOINT")?;
        let index = find_savepoint(&open.savepoints, name)?;
        open.live_transaction()?.release_savepoint(name).map_err(from_transaction)?;
        open.savepoints.truncate(index);
        Ok(())
    }

    /// Returns the open block; `25P01` outside of one.
    fn explicit_block(&mut self, command: &str) -> SqlResult<&mut OpenTransaction> {
        match &mut self.open {
            Some(open) if open.explicit => Ok(open),
            _ => Err(outside_block_error(command)),
        }
    }
}

impl OpenTransaction {
    /// Returns the transaction; `72000` if its snapshot was released.
    fn live_transaction(&mut self) -> SqlResult<&mut Transaction> {
        self.transaction.as_mut().ok_or_else(snapshot_too_old)
    }
}

/// Returns the index of the newest savepoint of this name.
fn find_savepoint(savepoints: &[Savepoint], name: &str) -> SqlResult<usize> {
    savepoints
        .iter()
        .rposition(|savepoint| savepoint.name == name)
        .ok_or_else(|| SqlError::new(Condition::InvalidSavepoint, format!("savepoint \"{name}\" does not exist")))
}

/// Returns the error of a command that is allowed in a transaction block only (`25P01`).
pub(crate) fn outside_block_error(command: &str) -> SqlError {
    SqlError::new(Condition::NoActiveTransaction, format!("{command} can only be used in transaction blocks"))
}
