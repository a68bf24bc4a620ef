//! The context of one statement: the catalog that it sees, its role, its time and its settings.
//!
//! Never looks a name up, and never waits. Where a moment of AS OF or the files of an external table are not at hand, the session fetches them and
//! plans the statement again.
//!
//! Start at `statement.rs`, the context itself.
//!
//! - `session.rs` has the part of it that functions and casts read, wherever a plan runs,
//! - `past.rs` gives earlier snapshots of the catalog, `files.rs` the files of external tables, `sequences.rs` the next numbers of sequences,
//! - `activity.rs` says which sessions and workers there are, for the system tables.

mod activity;
mod files;
mod past;
mod sequences;
mod session;
mod statement;

/// A value of a parameter or a constant, as plans have it.
pub use datafusion::scalar::ScalarValue;

pub use activity::{
    Activity, ClusterRow, CopyProgressRow, LIFE, LogRow, NoActivity, ServiceRow, SessionRow, StatementRow,
    WorkerCacheUses, WorkerRow,
};
pub use files::{FileColumn, Files, ListedFiles, NoFiles, WithoutRows};
pub use past::{CommittedRow, HistoryRow, LastDrop, NoPast, Past, PastState, Pin, StatementOutcomeRow};
pub use sequences::{NoNumbers, SequenceNumbers};
pub use session::Session;
pub use statement::{Assignment, Assignments, StatementContext};
