//! COPY both ways: text, CSV, binary and Parquet, from and to clients, files and URLs.
//!
//! Never commits: the rows of COPY FROM are staged in the statement's transaction, by what changes rows.
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
