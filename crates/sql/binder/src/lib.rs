//! Names and types: statements that read and change rows become plans with PostgreSQL's meaning.
//!
//! Never does I/O and never runs anything: a statement's [`session_context::StatementContext`] already carries the catalog it sees. What comes out
//! ([`Planned`]) is run by `execution`.
//!
//! - `rewrite/` says in other words what DataFusion does not plan, `bind/` finds names, views, parameters and types,
//! - `semantics/` gives expressions PostgreSQL's meaning where DataFusion's differs,
//! - `write/` plans INSERT, UPDATE, DELETE, MERGE and COPY,
//! - `planned.rs` is what a statement becomes.
//!
//! Start at [`Binder`].

mod bind;
mod past;
mod phases;
mod planned;
pub mod portable;
mod rewrite;
mod semantics;
mod session_command;
mod settled;
pub mod write;

pub use self::bind::{
    Binder, Environment, NoFragmentCache, as_of, is_numeric, parameter_index, parts_within, types_with_values,
};
pub use self::phases::{Begun, Phase, Phases};
pub use self::planned::{
    Action, ConflictPlan, ConflictUpdate, CopyFromPlan, CopySource, CopyTarget, CopyToPlan, DefinePlan, Division,
    ExplainFormat, ExplainPlan, LockedLimit, ModifyPlan, OptimizedOnce, OutputColumn, Password, Planned, QueryPlan,
    ReferencePlan, ReferencePlans, RowCheck, RowLocks, WritePlan,
};
pub use self::session_command::{ClusterCommand, SessionCommand, check_storage_columns};
pub use self::settled::{for_statement, is_settled, settled, settled_by};
