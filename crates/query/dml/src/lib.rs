//! Statements that change rows, run: INSERT, UPDATE, DELETE, MERGE, and queries that lock rows.
//!
//! Never commits and never knows a session: what a statement changes is staged in its transaction.
//!
//! Start at [`Dml`]; `write/` puts new rows into tables (`gathered.rs` with ON CONFLICT), `modify/` changes those that are there and those that refer to them.

mod dml;
mod modify;
mod write;

pub use dml::Dml;
pub use modify::{Many, Modified, Targets, place_of};
