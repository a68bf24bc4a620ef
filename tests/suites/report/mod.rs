//! Reports of a suite as text.
//!
//! - `summary.rs`: totals, and refusals by reason
//! - `lists.rs`: every difference, refusal and file

mod lists;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use self::lists::lists;
pub(crate) use self::summary::summary;
