//! Isolation levels: fixed interleavings with known outcomes, and random ones that are checked afterwards; PostgreSQL
//! is the control.
//!
//! - Fixed: `hermitage.rs` runs the scripts, which `script.rs` parses: `hermitage.txt`, `references.txt`,
//!   `definitions.txt` and `settling.txt`.
//! - Random: `append.rs` records a `history.rs`, `check.rs` finds anomalies, `proof.rs` confirms cycles
//!   independently.
//! - `definitions.rs`: writers beside changing table definitions.

mod append;
mod check;
mod check_tests;
mod definitions;
mod hermitage;
mod history;
mod proof;
mod script;
