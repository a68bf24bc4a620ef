//! COPY both ways: text, CSV, binary and Parquet, from and to clients, files and URLs.
//!
//! Start at `from/` for loading and `to/` for unloading.

mod copier;
mod files;
mod from;
mod to;

pub use copier::Copier;
pub(crate) use files::expand;
pub use from::Copied;
pub(crate) use from::{bucket_of, objects_in};
pub use to::{CopyOut, CopyPiece};
