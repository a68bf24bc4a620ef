//! Object storage: one handle for a durable local folder, S3, GCS and Azure.
//!
//! The crate does not know what objects contain and does not decide which objects are needed: `shards` and `txn` do.
//! The conditional puts `put_if_absent` and `put_if_matches` never overwrite another writer's object, and they
//! recognize a write of their own whose response was lost.
//!
//! In reading order:
//! - `objects/`: the handle [`Objects`] on a storage prefix, with retries
//! - `object_writer/`: multipart writes of objects of unknown size
//! - `open_by_url/`: opening a storage by its URL and environment variables
//! - `local/`: objects in a local folder
//! - `claim/`: exclusive ownership of a storage prefix by one instance
//! - `retry.rs`: retries of failed requests
//! - `error.rs`: the crate's errors
//! - `fault_injection/`: fault injection for tests
//! - `conformance.rs`: tests that every storage must pass

mod claim;
#[doc(hidden)]
pub mod conformance;
mod error;
mod fault_injection;
mod local;
mod object_writer;
mod objects;
mod open_by_url;
mod retry;

pub use claim::StorageClaim;
pub use error::{Error, Result};
pub use fault_injection::{Fault, FaultStore, RequestLatency};
pub use local::{FolderDisk, LocalStore};
pub use object_writer::ObjectWriter;
pub use objects::{ObjectInfo, Objects, Version};
