//! Statements as text over small catalogs: what they become, and what comes of it.

mod bind;
mod define;
pub(crate) mod write;
