//! COPY FROM and COPY TO: text, CSV, binary and Parquet, with clients, files and URLs.
//!
//! Never commits: `dml` stages the rows of COPY FROM in the statement's transaction.
//!
//! Start at [`CopyService`], then at `from/` for loading and `to/` for unloading.

mod files;
mod from;
mod service;
mod to;

#[cfg(test)]
mod fixtures;

pub use from::CopyFromOutcome;
pub use service::CopyService;
pub use to::{CopyChunk, CopyOut};
