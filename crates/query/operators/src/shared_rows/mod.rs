//! Shared rows: a subplan's rows computed once in a run, for all scans that read them.
//!
//! `run.rs` has the shared rows of one run, `exec.rs` the operator that reads them, and `rows.rs` computes them when
//! the first reader asks.

mod exec;
mod rows;
mod run;

#[cfg(test)]
mod tests;

pub use self::exec::SharedScanExec;
pub use self::rows::SharedRows;
pub(crate) use self::run::RowsOfRun;
