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
//! - `semantics/` has analyzer rules for that plan, which resolve the types of expressions (`type_resolution.rs`) with
//!   PostgreSQL's semantics,
//! - `write/` plans INSERT, UPDATE, DELETE, MERGE and COPY,
//! - `statement_plan.rs` has the plans of statements, `query_plan.rs` the plan of a query and its optimization,
//!   `session_command.rs` commands to the session,
//! - `value_lifetime.rs` tells how long an expression's value stays valid, `planning_timings.rs` measures planning, and
//!   `statement_step.rs` has the steps of a statement as log spans.

mod bind;
mod planning_timings;
mod query_plan;
mod rewrite;
mod semantics;
mod session_command;
mod statement_plan;
mod statement_step;
mod value_lifetime;
pub mod write;

pub use self::bind::{
    Binder, Environment, UNKNOWN_LIMIT, context_at_snapshot, is_numeric, parameter_index, partitions_for_memory,
    read_count, time_travel_target, types_with_values, with_single_partition,
};
pub use self::planning_timings::{PhaseStart, PlanningPhase, PlanningTimings};
pub use self::query_plan::{OptimizedPlanCache, OuterLimit, OutputColumn, QueryPlan, RowLocks};
pub use self::session_command::{ClusterCommand, SessionCommand, check_storage_columns};
pub use self::statement_plan::{
    Action, ConflictPlan, ConflictUpdate, CopyFromPlan, CopySource, CopyTarget, CopyToPlan, DefinePlan, ExplainFormat,
    ExplainPlan, ModifyPlan, NoRowCheck, Password, ReferencePlan, ReferencePlans, StatementPlan, WritePlan,
};
pub use self::statement_step::Step;
pub use self::value_lifetime::{expression_lifetime, is_fixed_at_planning, rebind_to_session};
