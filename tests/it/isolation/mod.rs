//! What concurrent transactions may see of each other, per isolation level: interleavings with known outcomes (`hermitage.txt`), and
//! random ones whose histories are checked afterwards (`append.rs`, `check.rs`). PostgreSQL runs all of them as the control.

mod append;
mod check;
mod check_tests;
mod hermitage;
mod history;
mod script;
