//! Planning of statements that write rows: INSERT, UPDATE, DELETE, MERGE and COPY FROM; and COPY TO, which shares
//! COPY's syntax.
//!
//! Each statement becomes a plan of complete rows of its table: values get assignment casts, omitted columns get
//! their DEFAULT, and NOT NULL and CHECK are tested for every row ([`functions::Constrained`]). Execution writes the
//! resulting rows.
//!
//! - `target.rs` (target table), `assign.rs` (assignment casts), `rows.rs` (complete rows), `identity.rs` (identity
//!   columns),
//! - `insert.rs` with `values.rs` (VALUES) and `conflict.rs` (ON CONFLICT),
//! - `update.rs`, `delete.rs` and `merge.rs` with `assigned.rs` (SET), `made.rs` (new rows) and `references.rs`
//!   (referential actions),
//! - `copy.rs` with `copy_options.rs`.

mod assign;
mod assigned;
mod conflict;
mod copy;
mod copy_options;
mod delete;
mod identity;
mod insert;
mod made;
mod merge;
mod references;
mod rows;
mod target;
mod update;
mod values;

pub use self::assign::{assign, is_assignable};
pub use self::copy::copy;
pub use self::copy_options::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};
pub use self::delete::delete;
pub use self::insert::insert;
pub use self::made::ACTION;
pub use self::merge::merge;
pub use self::rows::{column_types, input, projection};
pub use self::update::update;
