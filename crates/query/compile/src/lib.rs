//! Compiles physical plans for the engine: each part of a plan that the engine can run is replaced by one operator, a
//! [`FragmentExec`], which runs it.
//!
//! This crate gives statements no meaning, and caches nothing between queries except partial aggregates of shards.
//! "Worker" means one of the threads that run a pipeline in parallel.
//!
//! Compiling, in reading order:
//!
//! - `cover.rs` replaces the compilable parts of a physical plan; `refusals.rs` memoizes which operators cannot be
//!   compiled.
//! - `plan/` turns operators into pipelines, with one file per kind of operator (`limit.rs`: LIMIT).
//! - `expression/` turns DataFusion's expressions into the engine's. `foreign.rs` wraps those without a native form:
//!   they are evaluated over Arrow arrays.
//! - `whole_sorts.rs` completes the keys of sorts below merges.
//! - `estimate/` estimates rows and costs of operators, including compiled ones.
//!
//! Running:
//!
//! - `fragment.rs` is the operator of a compiled fragment.
//! - `run.rs` starts a fragment and `pipelines.rs` runs its pipelines in order, each on several workers (`workers.rs`).
//!   `output.rs` passes rows on, `ended.rs` converts errors.
//! - `share.rs` divides a pipeline's source among the workers, `source.rs` reads the pages of scans.
//! - `collected.rs` merges the workers' hash tables and groups, `sort.rs` their sorted rows. `top.rs` pushes the bound
//!   of a top-k sort into scans.
//! - `reuse/` is the cache of partial aggregates per shard.
//! - `spill/` writes rows without room in memory to files. A pipeline with a spilled build side is cut into stages
//!   (`stage.rs`).
//! - `memory.rs` accounts memory per operator, and `measure.rs` collects the other metrics of EXPLAIN ANALYZE.
//!
//! A fragment retains the operators that it replaces, for EXPLAIN. They are never executed: operators that the engine
//! cannot run are excluded when a plan is compiled, and an error of a running fragment is the query's error.

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
