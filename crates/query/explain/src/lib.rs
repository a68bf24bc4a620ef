//! EXPLAIN: shows a statement's operators as a tree in PostgreSQL's layout, with estimates and, with ANALYZE,
//! measurements.
//!
//! Never plans differently from a statement that runs: the operators shown are those that would run, or did.
//!
//! - `explainer.rs`: [`Explainer`], the entry point; `change.rs` explains statements that change or lock rows,
//! - `node.rs`: the nodes of the tree,
//! - `tree.rs`: the conversion of operators to nodes; `operator.rs` and `expressions.rs` name operators and format
//!   expressions,
//! - `by_key.rs`: the tree of statements that run on the primary-key fast path,
//! - `exchange.rs`: properties of exchanges between workers,
//! - `actual.rs`, `arrow.rs`: measurements, and the expressions that the engine evaluates on Arrow arrays,
//! - `text.rs`, `json.rs`: the output formats.

mod actual;
mod arrow;
mod by_key;
mod change;
mod exchange;
mod explainer;
mod expressions;
mod json;
mod node;
mod operator;
mod text;
mod tree;

pub use explainer::Explainer;
