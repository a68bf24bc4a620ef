//! Execution of INSERT, UPDATE, DELETE, MERGE and of queries that lock rows.
//!
//! Never commits and knows no session: the changes of a statement are staged in its transaction.
//!
//! Start at [`DmlExecutor`]; `write/` inserts rows (`collected_rows.rs` with ON CONFLICT), `modify/` changes existing
//! rows and runs referential actions.

mod dml;
mod modify;
mod write;

pub use dml::DmlExecutor;
pub use modify::{ModifyOutcome, ShardRows, StatementChanges, decode_place};
