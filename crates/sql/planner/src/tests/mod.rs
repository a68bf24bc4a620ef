//! Tests of planning statements, given as text, over small catalogs.

mod define;
pub(crate) mod fixture;
