//! Names and types: statements that read and change rows become plans with PostgreSQL's meaning.
//!
//! Never does I/O and never runs anything: a statement's [`session_context::StatementContext`] already carries the catalog it sees.
//!
//! Start at [`Binder`] (`bind/mod.rs`).
//!
//! - `rewrite/` says in other words what DataFusion cannot plan, before names are known,
//! - `bind/` finds names (`resolve/`), views and parameters and has DataFusion make a plan (`query.rs`),
//! - `semantics/` are rules over that plan, which give expressions their types (`resolve.rs`) and PostgreSQL's meaning,
//! - `write/` plans INSERT, UPDATE, DELETE, MERGE and COPY,
//! - `planned.rs` is what a statement becomes, `query_plan.rs` the plan of a query and its way to operators, and `step.rs` the steps that the log tells.

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
