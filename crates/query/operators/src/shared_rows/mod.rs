//! Shared rows: a subplan's rows computed once in a run, for all scans that read them.
//!
//! `registry.rs` has the shared rows of one run, `exec.rs` the operator that reads them, and `materialization.rs` computes them when
//! the first reader asks.

mod exec;
mod materialization;
mod registry;

#[cfg(test)]
mod tests;

pub use self::exec::SharedScanExec;
pub use self::materialization::SharedRows;
pub(crate) use self::registry::SharedRowsRegistry;
