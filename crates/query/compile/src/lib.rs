//! Compiles physical plans for the engine: each part of a plan that the engine can run is replaced by one operator, a
//! [`FragmentExec`], which runs it.
//!
//! This crate gives statements no meaning, and caches nothing between queries except partial aggregates of shards.
//! "Worker" means one of the threads that run a pipeline in parallel.
//!
//! Compiling, in reading order:
//!
//! - `compile_plan.rs` replaces the compilable parts of a physical plan; `compile_memo.rs` memoizes which operators
//!   cannot be compiled.
//! - `plan/` turns operators into pipelines, with one file per kind of operator (`limit.rs`: LIMIT).
//! - `expression/` turns DataFusion's expressions into the engine's. `arrow_functions.rs` wraps those without a native
//!   form: they are evaluated over Arrow arrays.
//! - `merge_sort_keys.rs` completes the keys of sorts below merges.
//! - `estimate/` estimates rows and costs of operators, including compiled ones.
//!
//! Running:
//!
//! - `fragment_exec.rs` is the operator of a compiled fragment.
//! - `run_fragment.rs` starts a fragment and `run_pipelines.rs` runs its pipelines in order, each on several workers
//!   (`pipeline_workers.rs`). `fragment_output.rs` passes rows on, `run_error.rs` converts errors.
//! - `shared_source.rs` divides a pipeline's source among the workers, `scan_reader.rs` reads the pages of scans.
//! - `merge_sinks.rs` merges the workers' hash tables and groups, `parallel_sort.rs` their sorted rows. `top_k.rs`
//!   pushes the bound of a top-k sort into scans.
//! - `fragment_cache/` is the cache of partial aggregates per shard.
//! - `spill_execution/` writes rows without room in memory to files. A pipeline with a spilled build side is cut into stages
//!   (`pipeline_stage.rs`).
//! - `memory_accounting.rs` accounts memory per operator, and `explain_metrics.rs` collects the other metrics of
//!   EXPLAIN ANALYZE.
//!
//! A fragment retains the operators that it replaces, for EXPLAIN. They are never executed: operators that the engine
//! cannot run are excluded when a plan is compiled, and an error of a running fragment is the query's error.

mod arrow_functions;
mod compile_memo;
mod compile_plan;
pub mod estimate;
mod explain_metrics;
mod expression;
mod fragment_cache;
mod fragment_exec;
mod fragment_output;
mod memory_accounting;
mod merge_sinks;
mod merge_sort_keys;
mod parallel_sort;
mod pipeline_stage;
mod pipeline_workers;
mod plan;
mod run_error;
mod run_fragment;
mod run_pipelines;
mod scan_reader;
mod shared_source;
mod spill_execution;
mod top_k;

pub use compile_memo::PartitionOperators;
pub use compile_plan::{compile_plan, compile_stage, compile_undivided, covers_entire_plan};
pub use explain_metrics::{FragmentMetrics, OperatorMetrics, SpillStats};
pub use fragment_exec::FragmentExec;
pub use merge_sort_keys::complete_sort_keys;
pub use plan::OperatorId;
