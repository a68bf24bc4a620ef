//! What a statement knows of its session: the catalog that it sees, who asks, when, and under which settings.
//!
//! Never looks a name up, and never waits: what is not at hand is fetched by whoever plans.
//!
//! - `statement.rs`: the surroundings of one statement,
//! - `session.rs`: the facts that functions and casts read, wherever a plan runs,
//! - `past.rs`, `files.rs`, `sequences.rs`, `activity.rs`: where a statement finds snapshots, files of others, numbers, and what the server does.

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
