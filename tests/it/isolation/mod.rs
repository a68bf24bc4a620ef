//! What concurrent transactions may see of each other, per isolation level: interleavings with known outcomes (`hermitage.txt`, `references.txt`,
//! `definitions.txt`, `settling.txt`), and random ones whose outcomes are checked afterwards (`append.rs`, `check.rs`, `proof.rs`, `definitions.rs`). PostgreSQL runs all of them as the control.

mod append;
mod check;
mod check_tests;
mod definitions;
mod hermitage;
mod history;
mod proof;
mod script;
