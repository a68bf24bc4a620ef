//! The context of one statement: its catalog snapshot, role, time and settings.
//!
//! Never looks up names and never waits: states for AS OF and files of external tables are fetched before a statement
//! is bound.
//!
//! - `statement.rs`: [`StatementContext`], the context itself; start here.
//! - `session.rs`: [`Session`], the part that functions and casts read, also in worker processes.
//! - `inputs.rs`: inputs to fetch before binding, and fetched ones: earlier catalog states (`past.rs`), files of
//!   external tables (`files.rs`).
//! - `sequences.rs`: the interface to the numbers of sequences.
//! - `activity.rs`: rows of system tables about sessions, clusters and workers.

mod activity;
mod files;
mod inputs;
mod past;
mod sequences;
mod session;
mod statement;

/// Value of a parameter or a constant in a plan.
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
