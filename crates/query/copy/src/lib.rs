//! COPY FROM and COPY TO: text, CSV, binary and Parquet, with clients, files and URLs.
//!
//! Never commits: `dml` stages the rows of COPY FROM in the statement's transaction.
//!
//! Start at [`Copier`], then at `from/` for loading and `to/` for unloading.

mod copier;
mod files;
mod from;
mod to;

#[cfg(test)]
mod fixtures;

pub use copier::Copier;
pub use from::Copied;
pub use to::{CopyOut, CopyPiece};
