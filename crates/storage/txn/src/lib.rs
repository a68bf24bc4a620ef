//! Transactions: snapshots, locks, staged changes, conflict detection, group commit, deletion of unreferenced objects.
//!
//! The crate knows no SQL and never reads a shard. A commit never waits for another transaction: of two transactions
//! with conflicting changes the later one fails with [`Error::Conflict`] and must run again. Statements wait for locks
//! instead, which they take before they change anything (`locks/`) and which are held until the transaction ends
//! (`transaction_locks.rs`).
//!
//! Reading order:
//!
//! - `transaction/`: the transaction as a session uses it
//! - `commit_group.rs`: validation of a commit against the newest state; several commits form one write
//! - `committer.rs`: the thread that makes a group of commits durable and visible
//! - `catalog_conflict/`: conflicts between changes of definitions and whole tables; two changes of one row are detected
//!   earlier, by the statement under the row's lock (`Transaction::find_row_fate`)
//! - `snapshot_registry.rs`: the newest committed state, and the commits that open snapshots still need
//! - `cleaner/`: deletion of objects that nothing references any more
//! - `time_travel.rs`: time travel
//! - `outcome/`: outcomes of transactions that clients identify by an idempotency token

mod catalog_conflict;
mod cleaner;
mod commit_group;
mod committer;
mod disk_space;
mod dropped_tables;
mod error;
mod garbage_records;
pub mod locks;
mod oid_allocator;
mod outcome;
mod read_validation;
mod rebind_own_rows;
mod recover;
mod row_id_allocator;
mod row_moves;
mod sequences;
mod snapshot_registry;
mod time_travel;
mod transaction;
mod transaction_locks;
mod transactions;
mod upload_announcements;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod process_kill_tests;
#[cfg(test)]
mod random_transaction_tests;
#[cfg(test)]
mod row_protocol_model;

pub use catalog_conflict::{Conflict, ConflictReason};
pub use cleaner::{CleanReport, CleanSettings, StorageClass, StorageRow};
pub use commit_group::DeletionGuard;
pub use committer::Committer;
pub use dropped_tables::LastDrop;
pub use error::{Error, Result};
pub use outcome::{
    Claim, ClaimError, Outcome, OutcomeSettings, STATEMENTS_MAX, StatementDigest, StatementHasher, StatementOutcome,
    TOKEN_BYTES_MAX, Token, TokenStatus,
};
pub use read_validation::KeyRead;
pub use row_moves::RowFate;
pub use sequences::SequenceExhausted;
pub use snapshot_registry::Snapshot;
pub use transaction::{Isolation, RollbackPoint, RowChange, Transaction};
pub use transactions::Transactions;
pub use upload_announcements::UploadAnnouncer;
