//! The context of one statement: its catalog snapshot, role, time and settings.
//!
//! Never looks up names and never waits: states for AS OF and files of external tables are fetched before a statement
//! is bound.
//!
//! - `statement_context.rs`: [`StatementContext`], the context itself; start here.
//! - `evaluation_context.rs`: [`EvaluationContext`], the part that functions and casts read, also in worker processes.
//! - `planning_inputs.rs`: inputs to fetch before binding, and fetched ones: earlier catalog states (`time_travel.rs`),
//!   files of external tables (`external_files.rs`).
//! - `sequence_numbers.rs`: the interface to the numbers of sequences.
//! - `server_activity.rs`: rows of system tables about sessions, clusters and workers.

mod evaluation_context;
mod external_files;
mod planning_inputs;
mod sequence_numbers;
mod server_activity;
mod statement_context;
mod time_travel;

/// Value of a parameter or a constant in a plan.
pub use datafusion::scalar::ScalarValue;

pub use evaluation_context::EvaluationContext;
pub use external_files::{FileColumn, ListedFiles};
pub use planning_inputs::{FetchedInputs, MissingInputs};
pub use sequence_numbers::{NoSequenceNumbers, SequenceNumbers};
pub use server_activity::{
    Activity, ClusterRow, CopyProgressRow, LogRow, NoActivity, STATEMENT_PHASES, ServiceRow, SessionRow, StatementRow,
    WorkerCacheStatistics, WorkerRow,
};
pub use statement_context::{SettingAssignment, SettingAssignments, StatementContext};
pub use time_travel::{
    CommittedTransaction, HistoricalState, HistoryRow, LastDrop, NoTimeTravel, SnapshotPin, StatementOutcomeRow,
    TimeTravel,
};
