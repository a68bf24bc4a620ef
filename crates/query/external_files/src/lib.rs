//! External files: resolution of locations, and the files of external tables, opened like shards.
//!
//! Never reads rows: an opened file is scanned like a shard.
//!
//! - `external_files.rs`: [`ExternalFiles`], which lists and opens the files of external tables; start here.
//! - `place.rs`: resolves a location to files, `glob.rs` on the local disk, `bucket.rs` in object storage.
//! - `known.rs`: [`KnownFiles`], the cache of opened files.
//! - `file_error.rs`: file errors in PostgreSQL's words.

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
