//! Plans to engine programs: each part of a plan that the engine can run becomes one operator, a [`FragmentExec`], which runs it.
//!
//! Never says what a statement means, and holds nothing between queries but groups of shards.
//!
//! Compiling, in reading order:
//!
//! - `cover.rs` replaces the parts of a physical plan that the engine can run; `refusals.rs` remembers the operators that it cannot.
//! - `plan/` makes pipelines of operators, one file per kind (`limit.rs`: LIMIT), and `expression/` engine expressions of DataFusion's. Functions without an
//!   engine form are called over Arrow's arrays (`foreign.rs`).
//! - `estimate/` has the expected rows of a plan's operators, compiled ones included.
//!
//! Running:
//!
//! - `run.rs` starts a program and `pipelines.rs` runs its pipelines in order, each on several workers (`workers.rs`). `ended.rs` converts their errors.
//! - `share.rs` divides a pipeline's source among the workers, `source.rs` reads the pages of scans.
//! - `collected.rs` merges the workers' hash tables and groups, `sort.rs` their sorted rows, `top.rs` pushes the bound of a top-k sort into scans.
//! - `reuse/` is the cache of partial aggregates per shard.
//! - `spill/` writes what has no room in memory to files, which cuts pipelines into stages (`stage.rs`).
//! - `measure.rs` counts for EXPLAIN ANALYZE.
//!
//! A fragment keeps the operators that it replaces, for EXPLAIN. They never run in its place: operators that the engine cannot run are left out when a plan
//! is compiled, and an error of a running program is the query's error.

mod collected;
mod cover;
mod ended;
pub mod estimate;
mod expression;
mod foreign;
mod fragment;
mod measure;
mod memory;
mod output;
mod pipelines;
mod plan;
mod refusals;
mod reuse;
mod run;
mod share;
mod sort;
mod source;
mod spill;
mod stage;
mod top;
mod whole_sorts;
mod workers;

pub use cover::{cover, cover_stage, cover_undivided, is_whole};
pub use fragment::FragmentExec;
pub use measure::{Did, Measured, Spilled};
pub use plan::OperatorId;
pub use refusals::MakePartitions;
pub use whole_sorts::whole_sort;
