//! EXPLAIN: shows a statement's operators as a tree in PostgreSQL's layout, with estimates and, with ANALYZE,
//! measurements.
//!
//! Never plans differently from a statement that runs: the operators shown are those that would run, or did.
//!
//! - `explainer.rs`: [`Explainer`], the entry point; `data_changes.rs` explains statements that change or lock rows,
//! - `plan_node.rs`: the nodes of the tree,
//! - `tree.rs`: the conversion of operators to nodes; `operator_description.rs` and `expressions.rs` name operators and
//!   format expressions,
//! - `key_lookup_tree.rs`: the tree of statements that run on the primary-key fast path,
//! - `exchange_properties.rs`: properties of exchanges between workers,
//! - `measurements.rs`, `arrow_expressions.rs`: measurements, and the expressions that the engine evaluates on Arrow
//!   arrays,
//! - `text.rs`, `json.rs`: the output formats.

mod arrow_expressions;
mod data_changes;
mod exchange_properties;
mod explainer;
mod expressions;
mod json;
mod key_lookup_tree;
mod measurements;
mod operator_description;
mod plan_node;
mod text;
mod tree;

pub use explainer::Explainer;
