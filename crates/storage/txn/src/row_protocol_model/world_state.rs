//! The complete state of the model, and its invariants.

use super::durable_store::Store;
use super::omitted_rule::OmittedRule;
use super::row_moves::{Compacted, Flushed, Move};
use super::serializable_reads::CommitWrite;
use super::table_rows::{Bucket, OwnVersions, Rows, Versions};
use super::transaction::{Level, Transaction};

/// Complete state of the model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct World {
    pub(super) bucket: Bucket,
    pub(super) rows: Rows,
    /// The rows that a new reader should see.
    pub(super) truth: Versions,
    pub(super) store: Store,
    pub(super) transactions: Vec<Transaction>,
    /// An old snapshot with the rows that its reader should see.
    pub(super) pinned: Option<(Rows, Versions)>,
    pub(super) running_flush: Option<Flushed>,
    pub(super) running_compaction: Option<Compacted>,
    /// Moves of rows, with their commits.
    pub(super) moves: Vec<(u8, Move)>,
    /// Writes while serializable transactions ran, with their commits.
    pub(super) written: Vec<(u8, CommitWrite)>,
    pub(super) spent: EventCounts,
}

/// Counts of the bounded events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct EventCounts {
    pub(super) rows: usize,
    pub(super) transactions: usize,
    pub(super) seals: usize,
    pub(super) compactions: usize,
    pub(super) crashes: usize,
    pub(super) pins: usize,
    pub(super) truncates: usize,
}

impl World {
    /// Checks that every reader sees the true rows, and would do so after a crash.
    pub(super) fn check(&self) -> Result<(), String> {
        let see = |who: &str, rows: &Rows, own: &OwnVersions, expected: &Versions| match rows.read(own, &self.bucket) {
            Ok(found) if found == *expected => Ok(()),
            Ok(found) => Err(format!("{who} sees {found:?} and should see {expected:?}")),
            Err(reason) => Err(format!("{who}: {reason}")),
        };
        let none = OwnVersions::default();
        see("a new reader", &self.rows, &none, &self.truth)?;
        see("a reader after a crash", &self.store.recover(), &none, &self.truth)?;
        if let Some((rows, truth)) = &self.pinned {
            see("an old reader", rows, &none, truth)?;
        }
        for transaction in &self.transactions {
            see("a transaction", &transaction.base, &transaction.own, &transaction.expected())?;
        }
        Ok(())
    }

    /// Returns the oldest commit that a snapshot needs.
    pub(super) fn horizon(&self) -> u8 {
        let transactions = self.transactions.iter().map(Transaction::horizon);
        let pinned = self.pinned.iter().map(|(rows, _)| rows.ts);
        transactions.chain(pinned).min().unwrap_or(self.rows.ts)
    }

    /// Records a write of the newest commit, if a serializable transaction runs.
    pub(super) fn record_write(&mut self, written: CommitWrite) {
        if self.transactions.iter().any(|transaction| transaction.level == Level::Serializable) {
            self.written.push((self.rows.ts, written));
        }
    }

    /// Forgets recorded writes if no serializable transaction runs.
    pub(super) fn forget_written(&mut self) {
        if self.transactions.iter().all(|transaction| transaction.level != Level::Serializable) {
            self.written.clear();
        }
    }

    /// Deletes unreferenced objects.
    pub(super) fn clean(&mut self, bug: Option<OmittedRule>) {
        let horizon = if bug == Some(OmittedRule::CleaningIgnoresSnapshots) { self.rows.ts } else { self.horizon() };
        let running_flush = self.running_flush.iter().map(|flushed| flushed.shard);
        let in_flight: Vec<u8> =
            running_flush.chain(self.running_compaction.iter().map(|compacted| compacted.shard)).collect();
        let is_live = |object: &u8| in_flight.contains(object) && bug != Some(OmittedRule::CleaningIgnoresUploads);
        for object in self.store.uploads.iter().filter(|object| !is_live(object)) {
            self.bucket[usize::from(*object)].is_there = false;
        }
        self.store.uploads.retain(is_live);
        for (_, object) in self.store.garbage.iter().filter(|(since, _)| *since <= horizon) {
            self.bucket[usize::from(*object)].is_there = false;
        }
        self.store.garbage.retain(|(since, _)| horizon < *since);
    }

    /// Forgets moves that no snapshot needs.
    pub(super) fn forget_moves(&mut self, bug: Option<OmittedRule>) {
        let horizon = if bug == Some(OmittedRule::MovesForgottenEarly) { self.rows.ts } else { self.horizon() };
        self.moves.retain(|(at, _)| horizon < *at);
    }
}
