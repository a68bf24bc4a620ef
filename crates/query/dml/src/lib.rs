//! Execution of INSERT, UPDATE, DELETE, MERGE and of queries that lock rows.
//!
//! Never commits and knows no session: the changes of a statement are staged in its transaction.
//!
//! Start at [`Dml`]; `write/` inserts rows (`gathered.rs` with ON CONFLICT), `modify/` changes existing rows and runs
//! referential actions.

mod dml;
mod modify;
mod write;

pub use dml::Dml;
pub use modify::{Many, Modified, Targets, place_of};
