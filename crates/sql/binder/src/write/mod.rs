//! Planning of statements that write rows: INSERT, UPDATE, DELETE, MERGE and COPY FROM; and COPY TO, which shares
//! COPY's syntax.
//!
//! Each statement becomes a plan of complete rows of its table: values get assignment casts, omitted columns get
//! their DEFAULT, and NOT NULL and CHECK are tested for every row ([`functions::ConstraintCheck`]). Execution writes the
//! resulting rows.
//!
//! - `target.rs` (target table), `assign.rs` (assignment casts), `rows.rs` (complete rows), `identity.rs` (identity
//!   columns),
//! - `insert.rs` with `values.rs` (VALUES) and `conflict.rs` (ON CONFLICT),
//! - `update.rs`, `delete.rs` and `merge.rs` with `set_clause.rs` (SET), `new_rows.rs` (new rows) and `references.rs`
//!   (referential actions),
//! - `copy.rs` with `copy_options.rs`.

mod assign;
mod conflict;
mod copy;
mod copy_options;
mod delete;
mod identity;
mod insert;
mod merge;
mod new_rows;
mod references;
mod rows;
mod set_clause;
mod target;
mod update;
mod values;

pub use self::assign::{cast_for_assignment, is_assignable};
pub use self::copy::plan_copy;
pub use self::copy_options::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};
pub use self::delete::plan_delete;
pub use self::insert::plan_insert;
pub use self::merge::plan_merge;
pub use self::rows::{build_projection, column_types, write_input};
pub use self::update::plan_update;
