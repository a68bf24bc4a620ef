//! The context of one statement: the catalog that it sees, its role, its time and its settings.
//!
//! Never looks a name up, and never waits: the session fetches what is not at hand and plans again.
//!
//! - `statement.rs`: the surroundings of one statement,
//! - `session.rs`: the facts that functions and casts read, wherever a plan runs,
//! - `past.rs`: earlier snapshots, `files.rs`: the files of external tables, `sequences.rs`: numbers, `activity.rs`: sessions and workers.

mod activity;
mod files;
mod past;
mod sequences;
mod session;
mod statement;

pub use activity::{
    Activity, ClusterRow, CopyProgressRow, LIFE, LogRow, NoActivity, SessionRow, StatementRow, WorkerCacheUses,
    WorkerRow,
};
pub use files::{FileColumn, Files, ListedFiles, NoFiles, WithoutRows};
pub use past::{CommittedRow, HistoryRow, LastDrop, NoPast, Past, PastState, Pin, StatementOutcomeRow};
pub use sequences::{NoNumbers, SequenceNumbers};
pub use session::Session;
pub use statement::{Assignment, Assignments, StatementContext};
