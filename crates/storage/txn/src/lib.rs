//! Commit: the one place where anything becomes visible, and the cleaning up behind it.
//!
//! Never knows SQL and never reads a shard. Nobody waits for a commit: who comes second on the same thing is told
//! [`Error::Conflict`] and runs again. Statements wait for locks, which come before (`locks/`) and end with the transaction (`holder.rs`).
//!
//! Start at `transaction/` for what a session does, then `group.rs` for what a commit may do and `committer.rs` for how it becomes durable. `conflict/` says
//! which changes of definitions and whole tables cannot happen side by side; two changes of one row are found before, under the row's lock, by the
//! statement (`Transaction::row_now`). `visible.rs` holds the newest state and what snapshots still need, `clean/` says when an object may go, `past.rs` how the past is
//! read, `outcome/` how a client learns what it has committed.

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
