//! The context of one statement: its catalog snapshot, role, time and settings.
//!
//! Never looks up names and never waits: states for AS OF and files of external tables are fetched before a statement
//! is bound.
//!
//! - `statement.rs`: [`StatementContext`], the context itself; start here.
//! - `evaluation_context.rs`: [`EvaluationContext`], the part that functions and casts read, also in worker processes.
//! - `inputs.rs`: inputs to fetch before binding, and fetched ones: earlier catalog states (`time_travel.rs`), files of
//!   external tables (`files.rs`).
//! - `sequences.rs`: the interface to the numbers of sequences.
//! - `activity.rs`: rows of system tables about sessions, clusters and workers.

mod activity;
mod evaluation_context;
mod files;
mod inputs;
mod sequences;
mod statement;
mod time_travel;

/// Value of a parameter or a constant in a plan.
pub use datafusion::scalar::ScalarValue;

pub use activity::{
    Activity, ClusterRow, CopyProgressRow, LogRow, NoActivity, STATEMENT_PHASES, ServiceRow, SessionRow, StatementRow,
    WorkerCacheStatistics, WorkerRow,
};
pub use evaluation_context::EvaluationContext;
pub use files::{FileColumn, ListedFiles};
pub use inputs::{FetchedInputs, MissingInputs};
pub use sequences::{NoSequenceNumbers, SequenceNumbers};
pub use statement::{SettingAssignment, SettingAssignments, StatementContext};
pub use time_travel::{
    CommittedTransaction, HistoricalState, HistoryRow, LastDrop, NoTimeTravel, SnapshotPin, StatementOutcomeRow,
    TimeTravel,
};
