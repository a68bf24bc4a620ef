//! Rows to be written: INSERT, UPDATE, DELETE, MERGE and COPY FROM; and COPY TO, which shares COPY's syntax.
//!
//! Each statement becomes a plan of whole rows of its table (`rows.rs`): values are cast as assignments are (`assign.rs`), columns
//! without one get their DEFAULT, NOT NULL and CHECK are asked of every row ([`functions::Constrained`]). Execution writes what comes out.

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
