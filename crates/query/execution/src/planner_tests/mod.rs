//! Statements as text over small catalogs and rows in memory: what they are planned as, and what comes of it.

mod bind;
mod context;
mod kept;
mod write;
