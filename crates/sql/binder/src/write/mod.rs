//! Planning of statements that write rows: INSERT, UPDATE, DELETE, MERGE and COPY FROM; and COPY TO, which shares
//! COPY's syntax.
//!
//! Each statement becomes a plan of complete rows of its table: values get assignment casts, omitted columns get
//! their DEFAULT, and NOT NULL and CHECK are tested for every row ([`functions::ConstraintCheck`]). Execution writes
//! the resulting rows.
//!
//! - `target.rs` (target table), `assignment_cast.rs` (assignment casts), `complete_rows.rs` (complete rows),
//!   `identity_values.rs` (identity columns),
//! - `insert.rs` with `insert_values.rs` (VALUES) and `on_conflict.rs` (ON CONFLICT),
//! - `update.rs`, `delete.rs` and `merge.rs` with `set_clause.rs` (SET), `new_rows.rs` (new rows) and
//!   `referential_actions.rs` (referential actions),
//! - `copy.rs` with `copy_options.rs`.

mod assignment_cast;
mod complete_rows;
mod copy;
mod copy_options;
mod delete;
mod identity_values;
mod insert;
mod insert_values;
mod merge;
mod new_rows;
mod on_conflict;
mod referential_actions;
mod set_clause;
mod target;
mod update;

pub use self::assignment_cast::{cast_for_assignment, is_assignable};
pub use self::complete_rows::{build_projection, column_types, write_input};
pub use self::copy::plan_copy;
pub use self::copy_options::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};
pub use self::delete::plan_delete;
pub use self::insert::plan_insert;
pub use self::merge::plan_merge;
pub use self::update::plan_update;
