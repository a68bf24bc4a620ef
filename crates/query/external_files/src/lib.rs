//! Files that are not Kiln's own: which of them a location names, and those of external tables, opened like shards.
//!
//! Never reads rows: an opened file is scanned as a shard is.
//!
//! Start at [`ExternalFiles`]; `place.rs` says which files a location names, `known.rs` keeps those that were opened lately.

mod bucket;
mod external_files;
mod file_error;
mod glob;
mod known;
mod place;

#[cfg(test)]
mod tests;

pub use bucket::{bucket_of, objects_in};
pub use external_files::ExternalFiles;
pub use file_error::{Purpose, broken, cannot_open, cannot_read};
pub use glob::expand;
pub use known::KnownFiles;
