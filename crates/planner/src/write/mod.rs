//! Rows to be written: INSERT, UPDATE, DELETE, MERGE, CREATE TABLE AS and COPY FROM; and COPY TO, which shares COPY's syntax.
//!
//! What a statement writes becomes a plan of whole rows of its table (`rows.rs`): values are cast as assignments are (`assign.rs`), columns
//! without one get their DEFAULT, NOT NULL and CHECK are asked of every row ([`functions::Constrained`]). Execution writes what comes out.

mod assign;
mod assigned;
mod conflict;
mod copy;
pub mod copy_options;
mod create_as;
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

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::assign::is_assignable;
pub(crate) use self::assigned::ASSIGNED;
pub(crate) use self::copy::copy;
pub(crate) use self::create_as::create_as;
pub(crate) use self::delete::delete;
pub(crate) use self::insert::insert;
pub(crate) use self::made::ACTION;
pub(crate) use self::merge::merge;
pub(crate) use self::update::update;
