//! COPY both ways: text, CSV, binary and Parquet, from and to clients, files and URLs.
//!
//! Start at `from/` for loading and `to/` for unloading.

mod copier;
mod files;
mod from;
mod to;

pub use copier::Copier;
pub use from::Copied;
pub use to::{CopyOut, CopyPiece};
