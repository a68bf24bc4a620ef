//! EXPLAIN: the operators of a statement as a tree in PostgreSQL's manner, with what they are expected to do and, with ANALYZE, what they did.
//!
//! Never plans otherwise than a statement that runs: what is shown are the operators that would run, or did.
//!
//! Start at [`Explainer`]; `tree.rs` makes the tree, `operator.rs` says what each operator is called, `text.rs` and `json.rs` write it.

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
