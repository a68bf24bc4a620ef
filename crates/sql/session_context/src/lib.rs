//! The context of one statement: the catalog that it sees, its role, its time and its settings.
//!
//! Never looks a name up, and never waits: states of AS OF and the files of external tables are fetched before a statement is bound.
//!
//! Start at `statement.rs`, the context itself.
//!
//! - `session.rs` has the part of it that functions and casts read, wherever a plan runs,
//! - `inputs.rs` says what has to be fetched, and has what was: earlier states of the catalog (`past.rs`), files of external tables (`files.rs`),
//! - `sequences.rs` gives the next numbers of sequences,
//! - `activity.rs` says which sessions and workers there are, for the system tables.

mod activity;
mod files;
mod inputs;
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
pub use files::{FileColumn, ListedFiles};
pub use inputs::{FetchedInputs, MissingInputs};
pub use past::{CommittedRow, HistoryRow, LastDrop, NoPast, Past, PastState, Pin, StatementOutcomeRow};
pub use sequences::{NoNumbers, SequenceNumbers};
pub use session::Session;
pub use statement::{Assignment, Assignments, StatementContext};
