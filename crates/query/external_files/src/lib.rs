//! External files: resolution of locations, and the files of external tables, opened like shards.
//!
//! Never reads rows: an opened file is scanned like a shard.
//!
//! - `external_files.rs`: [`ExternalFiles`], which lists and opens the files of external tables; start here.
//! - `location.rs`: resolves a location to files, `glob.rs` on the local disk, `object_listing.rs` in object storage.
//! - `file_cache.rs`: [`FileCache`], the cache of opened files.
//! - `file_error.rs`: file errors in PostgreSQL's words.

mod external_files;
mod file_cache;
mod file_error;
mod glob;
mod location;
mod object_listing;

#[cfg(test)]
mod tests;

pub use external_files::ExternalFiles;
pub use file_cache::FileCache;
pub use file_error::{FileOperation, cannot_open, cannot_read, io_failure};
pub use glob::expand_pattern;
pub use object_listing::{list_matching_objects, split_bucket_url};
