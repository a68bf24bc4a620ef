//! Plans to engine programs: each part of a plan that the engine can run becomes one operator, a [`FragmentExec`], which runs it.
//!
//! Never says what a statement means, and holds nothing between queries but groups of shards.
//!
//! `cover.rs` goes over a plan, `plan` makes pipelines of operators and `expression.rs` expressions of DataFusion's; what has no form of the engine's own is called
//! through `foreign.rs`. `run.rs` runs a program, `pipelines.rs` drives its pipelines, each by `workers.rs`, `collected.rs` puts together what these have collected, `share.rs`
//! divides their sources among these, `sort.rs` sorts what they have collected, `top.rs` tells scans what is not wanted of it, `source.rs` brings pages of
//! scans, and `reuse` what earlier queries have grouped of them. What has no room in memory goes through files (`spill`), which cuts pipelines in stages (`stage.rs`). The operators that a fragment stands for stay with it: EXPLAIN shows them. They never run in its place: what
//! the engine cannot run is refused here, before it runs, and what fails while it runs fails with it. `estimate` is what is expected of a plan's operators, those that programs stand for among them.

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
