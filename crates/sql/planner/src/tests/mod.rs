//! Statements as text over small catalogs: what they become.

mod define;
pub(crate) mod fixture;
