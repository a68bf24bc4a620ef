//! COPY FROM and COPY TO: text, CSV, binary and Parquet, with clients, files and URLs.
//!
//! Never commits: `dml` stages the rows of COPY FROM in the statement's transaction.
//!
//! Start at [`CopyService`], then at `from/` for loading and `to/` for unloading.

mod copy_service;
mod files;
mod from;
mod to;

#[cfg(test)]
mod fixtures;

pub use copy_service::CopyService;
pub use from::CopyFromOutcome;
pub use to::{CopyChunk, CopyOut};
