//! Admission: a cluster runs a limited number of statements at a time, the others wait in a fair queue.
//!
//! Never runs a statement and never chooses its cluster. Time comes from `types::Clock`.
//!
//! Start at `admission/mod.rs`.

pub mod admission;

#[cfg(test)]
mod fixtures;

pub use admission::{Admission, Admit, Limits, Permit, Refusal};
