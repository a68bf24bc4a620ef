//! Name and type resolution: turns parsed statements that read or change rows into logical plans with PostgreSQL's
//! semantics.
//!
//! This crate does no I/O and runs nothing: a statement's [`session_context::StatementContext`] already has the
//! catalog snapshot that it sees.
//!
//! Start at [`Binder`] (`bind/mod.rs`).
//!
//! - `rewrite/` rewrites syntax that DataFusion cannot plan, before names are resolved,
//! - `bind/` resolves names (`resolve/`), views and parameters, and has DataFusion build a plan (`query.rs`),
//! - `semantics/` has analyzer rules for that plan, which resolve the types of expressions (`resolve.rs`) with
//!   PostgreSQL's semantics,
//! - `write/` plans INSERT, UPDATE, DELETE, MERGE and COPY,
//! - `planned.rs` has the plans of statements, `query_plan.rs` the plan of a query and its optimization,
//!   `session_command.rs` commands to the session,
//! - `settled.rs` tells how long an expression's value stays valid, `phases.rs` measures planning, and `step.rs` has
//!   the steps of a statement as log spans.

mod bind;
mod phases;
mod planned;
mod query_plan;
mod rewrite;
mod semantics;
mod session_command;
mod settled;
mod step;
pub mod write;

pub use self::bind::{
    Binder, Environment, LIMIT_UNKNOWN, count_of, is_numeric, moment_of, parameter_index, parts_within, statement_at,
    types_with_values, undivided,
};
pub use self::phases::{Begun, Phase, Phases};
pub use self::planned::{
    Action, ConflictPlan, ConflictUpdate, CopyFromPlan, CopySource, CopyTarget, CopyToPlan, DefinePlan, ExplainFormat,
    ExplainPlan, ModifyPlan, Password, Planned, ReferencePlan, ReferencePlans, RowCheck, WritePlan,
};
pub use self::query_plan::{LockedLimit, OptimizedOnce, OutputColumn, QueryPlan, RowLocks};
pub use self::session_command::{ClusterCommand, SessionCommand, check_storage_columns};
pub use self::settled::{for_statement, is_settled, settled};
pub use self::step::Step;
