//! Admission control: a cluster runs a limited number of statements at a time, and the others wait in a fair queue.
//!
//! This crate neither runs statements nor chooses their cluster. Time comes from [`types::Clock`]. Start at
//! `admission/mod.rs`.

pub mod admission;

#[cfg(test)]
mod counting_waker;

pub use admission::{Admission, Admit, Limits, Permit, Refusal};
