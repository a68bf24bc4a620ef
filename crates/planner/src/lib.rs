//! Statements to plans: names and types, PostgreSQL's semantics on DataFusion, rows to be written, catalog changes.
//!
//! Never does I/O and never runs anything: a statement's [`session_context::StatementContext`] already carries the catalog it sees, and what
//! comes out ([`Planned`]) is run by `execution` and staged by the gateway.
//!
//! Start at `planner.rs`; then `bind/` (queries), `write/` (INSERT, COPY), `define/` (CREATE, ALTER, DROP),
//! and `semantics/` for where PostgreSQL and DataFusion differ; [`functions`] has what they call.

mod bind;
pub mod define;
pub mod explain;
mod kept;
mod past;
mod phases;
mod planned;
mod planner;
pub mod portable;
mod prepared_plan;
pub mod rewrite;
pub mod semantics;
mod session;
mod settled;
pub mod write;

pub use bind::{NoFragmentCache, parts_within, types_with_values};
pub use phases::{Begun, Phase, Phases};
pub use planned::{
    Action, ConflictPlan, ConflictUpdate, CopyFromPlan, CopySource, CopyTarget, CopyToPlan, DefinePlan, Division,
    ExplainFormat, ExplainPlan, LockedLimit, ModifyPlan, OptimizedOnce, OutputColumn, Password, Planned, QueryPlan,
    ReferencePlan, ReferencePlans, RowCheck, RowLocks, WritePlan,
};
pub use planner::Planner;
pub use prepared_plan::PreparedPlan;
pub use session::check_storage_columns;
pub use session::{ClusterCommand, SessionCommand};
pub use settled::{for_statement, settled};
pub use write::copy_options::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};
