//! Transactions: snapshots, locks, staged changes, conflict detection, group commit, deletion of unreferenced objects.
//!
//! The crate knows no SQL and never reads a shard. A commit never waits for another transaction: of two transactions
//! with conflicting changes the later one fails with [`Error::Conflict`] and must run again. Statements wait for locks
//! instead, which they take before they change anything (`locks/`) and which are held until the transaction ends
//! (`holder.rs`).
//!
//! Reading order:
//!
//! - `transaction/`: the transaction as a session uses it
//! - `group.rs`: validation of a commit against the newest state; several commits form one write
//! - `committer.rs`: the thread that makes a group of commits durable and visible
//! - `conflict/`: conflicts between changes of definitions and whole tables; two changes of one row are detected
//!   earlier, by the statement under the row's lock (`Transaction::row_now`)
//! - `visible.rs`: the newest committed state, and the commits that open snapshots still need
//! - `clean/`: deletion of objects that nothing references any more
//! - `past.rs`: time travel
//! - `outcome/`: outcomes of transactions that clients identify by an idempotency token

mod bind;
mod clean;
mod committer;
mod conflict;
mod dropped;
mod error;
mod garbage;
mod group;
mod holder;
pub mod locks;
mod moves;
mod oids;
mod outcome;
mod past;
mod reads;
mod recover;
mod room;
mod row_ids;
mod sequences;
mod transaction;
mod transactions;
mod uploads;
mod visible;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod model;
#[cfg(test)]
mod model_tests;

pub use clean::{CleanReport, CleanSettings, StorageClass, StorageRow};
pub use committer::Committer;
pub use conflict::{Conflict, Reason};
pub use dropped::LastDrop;
pub use error::{Error, Result};
pub use group::Held;
pub use moves::RowNow;
pub use outcome::{
    Claim, ClaimError, Known, Outcome, OutcomeSettings, STATEMENTS_MAX, TOKEN_BYTES_MAX, Token, Work, WorkDigest,
    Written,
};
pub use reads::KeyRead;
pub use sequences::Exhausted;
pub use transaction::{Isolation, RowChange, Transaction};
pub use transactions::Transactions;
pub use uploads::Uploads;
pub use visible::Snapshot;
